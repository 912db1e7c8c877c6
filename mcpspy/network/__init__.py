"""How a server is reached: directly, through a company's proxy, with certificates, on a Unix socket."""
