"""Gate files: compile TOML to gates (`mcpspy/gate/compiled.py` has their form), or report a mistake in one line.

A relay never imports this package. The command line compiles a file before anything starts. `wrap` uses another process
for that (`python -m mcpspy.gate_files`), so that its own process stays light.
"""
