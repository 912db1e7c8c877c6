"""Reports of problems, findings and differences, for people and programs: text, JSON, JUnit, SARIF, GitHub commands."""
