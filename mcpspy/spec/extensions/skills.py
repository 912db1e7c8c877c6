"""Skills: directories of instructions for agents, served as resources (SEP-2640, final 2026-09-13).

https://github.com/modelcontextprotocol/ext-skills. Only a server declares them. The text specifies them for 2026-07-28
and later. Its SDK serves the same methods after a handshake of an older revision too, without `ttlMs` and `cacheScope`.
So every revision has the shapes, and those two members are required only if the revision has them.
"""

from mcpspy.spec.definitions.base import PAGE, request
from mcpspy.spec.extensions.extension import Extension
from mcpspy.spec.shapes import INTEGER, STRING, URI, Definitions, array, const, either, record

_SKILL_SHAPES: Definitions = {
    "skills.SkillResource": record({"uri": URI, "digest": STRING, "size": INTEGER | {"minimum": 0}}),
    "skills.Skill": record(
        {
            "uri": URI,
            "frontmatter": record({"name": STRING, "description": STRING}),
            "resources": either(array("skills.SkillResource"), const("dynamic")),
        }
    ),
    "skills.ListSkillsRequest": request("skills/list", PAGE),
    "skills.ListSkillsResult": record({"skills": array("skills.Skill")}, "PaginatedResult", "CacheableResult"),
    "skills.GetSkillRequest": request("skills/get", record({"uri": URI}, "RequestParams")),
    "skills.GetSkillResult": record({"skill": "skills.Skill"}, "Result", "CacheableResult"),
    "skills.ReadResourceDirectoryRequest": request(
        "resources/directory/read", record({"uri": URI}, "PaginatedRequestParams")
    ),
    "skills.ReadResourceDirectoryResult": record({"resources": array("Resource")}, "PaginatedResult"),
    "skills.ClientRequest": either(
        "skills.ListSkillsRequest", "skills.GetSkillRequest", "skills.ReadResourceDirectoryRequest"
    ),
}

SKILLS = Extension("io.modelcontextprotocol/skills", needs=("server",), prefix="skills.", definitions=_SKILL_SHAPES)
