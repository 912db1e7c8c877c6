"""What was found, for people and for programs: text, JSON, JUnit, SARIF, commands for GitHub."""
