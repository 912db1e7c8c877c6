"""Questions about many captures at once: statistics of servers, tools and clients, and tables for SQL."""
