"""The oracle: every output for many captures, compared with frozen bytes by `scripts/oracle`.

A change that only moves or merges code leaves all outputs as they are. `captures.py` has the captures, `commands.py`,
`viewers.py` and `servers.py` have the outputs, and `frozen.py` compares them.
"""
