"""Made-up secrets in the forms of real services, in a separate table, so that a kind missing in `KINDS` is noticed.

In a body, `a12` means twelve letters and digits, `u` capitals and digits, `h` hexadecimal digits and `d` digits.
Text in quotes is literal. No token is written here in one piece.
"""

import re
import string
from random import Random

_TABLE = """
OpenAI, Anthropic or similar API key | sk- | a48
OpenAI, Anthropic or similar API key | sk-proj- sk-ant-api03- sk-or-v1- sk-svcacct- | a60
Stripe key | sk_live_ sk_test_ rk_live_ rk_test_ | a24
GitHub token | ghp_ gho_ ghu_ ghs_ ghr_ | a36
GitHub fine-grained token | github_pat_ | a22 '_' a59
GitLab token | glpat- gldt- glrt- glcbt- glptt- gloas- glft- glimt- glagent- glsoat- | a20
Slack token | xoxb- xoxp- xoxa- xoxr- xoxs- xoxe- xoxc- xoxd- xoxe. | d11 '-' d12 '-' a24
Slack app token | xapp- | '1-' u11 '-' d13 '-' h64
Slack webhook | hooks.slack.com/services/ hooks.slack.com/workflows/ hooks.slack.com/triggers/ | 'T' u9 '/B' u9 '/' a24
Discord webhook | discord.com/api/webhooks/ discordapp.com/api/webhooks/ | d18 '/' a68
Microsoft webhook | corp.webhook.office.com/ | 'webhookb2/' h36 '/IncomingWebhook/' h32
AWS access key | AKIA ASIA ABIA ACCA | u16
Google API key | AIza | a35
Google OAuth client secret | GOCSPX- | a28
Google OAuth token | ya29. | a120
JSON Web Token | eyJ | 'hbGciOiJIUzI1NiJ9.eyJ' a40 '.' a43
Hugging Face token | hf_ | a34
npm token | npm_ | a36
PyPI token | pypi- | 'AgE' a150
RubyGems token | rubygems_ | h48
SendGrid key | SG. | a22 '.' a43
Shopify token | shpat_ shpca_ shppa_ shpss_ | h32
DigitalOcean token | dop_v1_ doo_v1_ dor_v1_ | h64
Notion token | ntn_ | a46
Notion integration token | secret_ | a43
Linear key | lin_api_ lin_oauth_ | a40
Figma token | figd_ figo_ | a40
Groq key | gsk_ | a52
xAI key | xai- | a80
Perplexity key | pplx- | a48
Tavily key | tvly-dev- tvly-prod- tvly- | a32
Firecrawl key | fc- | h32
Replicate token | r8_ | a37
Pinecone key | pcsk_ | a6 '_' a63
NVIDIA key | nvapi- | a64
Cerebras key | csk- | a48
Jina key | jina_ | a60
ElevenLabs key | sk_ | h48
LangSmith key | lsv2_pt_ lsv2_sk_ | h32 '_' h10
E2B key | e2b_ | h40
Browserbase key | bb_live_ | a27
Apify token | apify_api_ | a36
Resend key | re_ | a8 '_' a24
PostHog personal key | phx_ | a43
Atlassian token | ATATT ATCTT | '3xFfGF0' a180 '=' u8
Databricks token | dapi | h32
HashiCorp Vault token | hvs. hvb. hvr. | a90
Terraform Cloud token | q7Zx0Wv9Kp3Ls5.atlasv1. | a67
Sentry token | sntrys_ sntryu_ | a64
Docker token | dckr_pat_ dckr_oat_ | a27
Postman key | PMAK- | h24 '-' h34
Webhook signing secret | whsec_ | a32
Telegram bot token | 123456789:AA | a33
Twilio key | SK | h32
Mailgun key | key- | h32
age key | AGE-SECRET-KEY-1 | u58
private key (PEM) | -----BEGIN | ' RSA PRIVATE KEY-----' n a64 n a64 n '-----END RSA PRIVATE KEY-----'
Azure connection string | AccountKey= SharedAccessKey= | a86 '=='
Zapier MCP URL | mcp.zapier.com/ actions.zapier.com/ | 'api/mcp/s/' a40 '/mcp'
Composio MCP URL | mcp.composio.dev/ backend.composio.dev/ apollo.composio.dev/ | 'composio/server/' h36 '/mcp'
Grafana token | glsa_ glc_ | a32 '_' h8
New Relic key | NRAK- | u27
PlanetScale token | pscale_tkn_ pscale_oauth_ pscale_pw_ | a43
Supabase key | sbp_ sb_secret_ | h40
Doppler token | dp.pt. dp.st. dp.ct. dp.sa. dp.scim. | a43
Square token | sq0atp- sq0csp- | a43
Fly.io token | fm2_ fo1_ | a86
Contentful token | CFPAT- | a43
HubSpot token | pat-na1- pat-eu1- pat-na2- | h8 '-' h4 '-' h4 '-' h4 '-' h12
Netlify token | nfp_ | a36
Tailscale key | tskey-api- tskey-auth- tskey-client- | a12 'CNTRL-' a32
1Password service account | ops_eyJ | a200
Sourcegraph token | sgp_ | h16 '_' h40
Pulumi token | pul- | h40
Buildkite token | bkua_ | h40
"""
_ALPHABETS = {
    "a": string.ascii_letters + string.digits,
    "u": string.ascii_uppercase + string.digits,
    "h": "0123456789abcdef",
    "d": string.digits,
}


def _body(form: str, random: Random) -> tuple[str, str]:
    """Return the text after a literal, and its longest part that must not be visible."""
    parts = []
    for quoted, letter, size in re.findall(r"'([^']*)'|([audh])(\d+)|n", form):
        parts.append(quoted or "".join(random.choices(_ALPHABETS.get(letter, "\n"), k=int(size or 1))))
    return "".join(parts), max((part for part in parts if part.isalnum()), key=len)


def rows() -> list[tuple[str, str, str]]:
    """Return each kind, literal and form of the table."""
    table = [[cell.strip() for cell in row.split(" | ")] for row in _TABLE.strip().splitlines()]
    return [(kind, literal, form) for kind, literals, form in table for literal in literals.split()]


def secret(row: tuple[str, str, str], random: Random) -> tuple[str, str, str]:
    """Return a secret of a row: its kind, the whole token, and the part that must not be visible."""
    kind, literal, form = row
    body, visible = _body(form, random)
    return kind, literal + body, visible[-24:]


def secrets() -> list[tuple[str, str, str]]:
    """Return a secret of each row; always the same."""
    random = Random(210)  # noqa: S311 (made up)
    return [secret(row, random) for row in rows()]
