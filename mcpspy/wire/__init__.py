"""Sans-io decoders from the bytes of a transport to frames."""
