"""MCP Apps: tools whose results are shown by an interface that the server has as a resource (stable 2026-01-26).

https://github.com/modelcontextprotocol/ext-apps. It adds no methods. Its definitions are in the `_meta` of tools and
resources. Only a client declares it.
"""

from mcpspy.spec.extensions.extension import Extension
from mcpspy.spec.shapes import BOOLEAN, OBJECT, STRING, Definitions, array, enum, record
from mcpspy.wire.jsonrpc import Result

MIME_TYPE = "text/html;profile=mcp-app"
"""The type of an interface, unless the client declared other ones."""

_DOMAINS = array(STRING)

_UI_SHAPES: Definitions = {
    "ui.ToolMeta": record({"resourceUri?": STRING, "visibility?": array(enum("model", "app"))}),
    "ui.ResourceMeta": record(
        {
            "csp?": record(
                {
                    "connectDomains?": _DOMAINS,
                    "resourceDomains?": _DOMAINS,
                    "frameDomains?": _DOMAINS,
                    "baseUriDomains?": _DOMAINS,
                }
            ),
            "permissions?": record(
                {"camera?": OBJECT, "microphone?": OBJECT, "geolocation?": OBJECT, "clipboardWrite?": OBJECT}
            ),
            "domain?": STRING,
            "prefersBorder?": BOOLEAN,
        }
    ),
    "ui.Tool": record({"_meta?": record({"ui?": "ui.ToolMeta", "ui/resourceUri?": STRING})}),
    "ui.Resource": record({"_meta?": record({"ui?": "ui.ResourceMeta"})}),
    "ui.Tools": record({"tools": array("ui.Tool")}),
    "ui.Resources": record({"resources": array("ui.Resource")}),
    "ui.Contents": record({"contents": array("ui.Resource")}),
}

UI = Extension(
    "io.modelcontextprotocol/ui",
    needs=("client",),
    prefix="ui.",
    definitions=_UI_SHAPES,
    additions={
        ("tools/list", Result): "ui.Tools",
        ("resources/list", Result): "ui.Resources",
        ("resources/read", Result): "ui.Contents",
    },
)
