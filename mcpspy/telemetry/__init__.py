"""Captures as telemetry: spans, metrics and logs by the OpenTelemetry conventions for MCP."""
