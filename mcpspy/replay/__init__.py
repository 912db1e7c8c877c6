"""A capture put to work: as the server of a client, as the client of a server, and compared with another."""
