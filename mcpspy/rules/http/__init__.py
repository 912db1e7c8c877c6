"""Rules about HTTP: how messages are posted and answered, headers, sessions and streams, OAuth."""
