"""Gate files: TOML in, compiled gates out (`mcpspy/gate/compiled.py` has their form), or one line that names a mistake.

A relay never imports this. The command line compiles a file before anything starts; `wrap` has that done by another
process (`python -m mcpspy.gate_files`), so that its own stays light.
"""
