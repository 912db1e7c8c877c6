"""Reports of findings and differences, for people and for programs: text, JSON, JUnit, SARIF, GitHub commands."""
