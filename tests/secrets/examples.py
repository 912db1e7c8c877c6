"""A made-up token of each kind in the table, and names whose values are secret."""

from mcpspy.secrets.patterns import KINDS, Kind

_LETTERS = "q7Zx0Wv9Kp3Ls5Jd8Fh2Gm4Nb6Tc1Ry" * 5
_HEX = "3f9a0c7e51d2b86430ef" * 5
_UPPER = "Q7ZX0WV9KP3LS5JD8FH2GM4NB6TC1RY" * 3

_REST = {
    "OpenAI, Anthropic or similar API key": _LETTERS[:40],
    "Slack token": "1234567890-" + _LETTERS[:24],
    "Slack app token": "1-A0B1C2D3E4-1234567890-" + _HEX[:32],
    "Slack webhook": f"T{_UPPER[:9]}/B{_UPPER[9:18]}/{_LETTERS[:24]}",
    "Discord webhook": "123456789012345678/" + _LETTERS[:60],
    "Microsoft webhook": "webhookb2/" + _LETTERS[:36],
    "AWS access key": _UPPER[:16],
    "Google API key": _LETTERS[:35],
    "JSON Web Token": "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmN",
    "PyPI token": "AgE" + _LETTERS[:80],
    "SendGrid key": f"{_LETTERS[:22]}.{_LETTERS[22:65]}",
    "Notion integration token": _LETTERS[:43],
    "LangSmith key": f"{_HEX[:32]}_{_HEX[32:42]}",
    "Resend key": f"{_LETTERS[:8]}_{_LETTERS[8:32]}",
    "Postman key": f"{_HEX[:24]}-{_HEX[24:58]}",
    "Telegram bot token": _LETTERS[:33],
    "age key": _UPPER[:58],
    "private key (PEM)": f" RSA PRIVATE KEY-----\n{_LETTERS[:64]}\n{_LETTERS[64:128]}\n-----END RSA PRIVATE KEY-----",
    "Azure connection string": _LETTERS[:86] + "==",
    "Zapier MCP URL": f"api/mcp/s/{_LETTERS[:40]}/mcp",
    "Composio MCP URL": f"composio/server/{_LETTERS[:36]}/mcp",
    "New Relic key": _UPPER[:27],
    "HubSpot token": "3f9a0c7e-51d2-4b86-90ef-3f9a0c7e51d2",
}
_HEXES = {
    "Shopify token": 32, "DigitalOcean token": 64, "Firecrawl key": 32, "E2B key": 40, "ElevenLabs key": 48,
    "Databricks token": 32, "Twilio key": 32, "Mailgun key": 32, "RubyGems token": 48, "Pulumi token": 40,
    "Buildkite token": 40,
}  # fmt: skip
_BEFORE = {"Telegram bot token": "123456789", "Terraform Cloud token": "q7Zx0Wv9Kp3Ls5"}


def token(kind: Kind, literal: str) -> str:
    """Return a token that contains the literal, with the prefix that the kind requires before it."""
    rest = _REST.get(kind.name) or (_HEX[: _HEXES[kind.name]] if kind.name in _HEXES else _LETTERS[:64])
    return _BEFORE.get(kind.name, "") + literal + rest


def secret(kind: Kind, literal: str) -> str:
    """Return the part of the token that must not be visible."""
    rest = token(kind, literal).partition(literal)[2]
    return rest.split("\n")[1] if "\n" in rest else rest[-12:]


TOKENS = [(kind, literal) for kind in KINDS for literal in kind.literals]

OPTIONS = (
    "key pat pass passphrase bearer tokens master-key api-key api_key apiKey access-token github-pat secret"
    " client-secret password passwd pwd auth credential credentials signature private-key secret-key account-key cookie"
    " jwt API_KEY_2 db-pass otp functions-key encryption-key signing-key creds passcode authToken dbPass githubPat"
    " GITHUB_TOKEN client_secret DB.PASSWORD AWS_ACCESS_KEY github-personal-access-token MYSQL_PWD basic-auth id_jwt"
).split()
HEADERS = (
    "Authorization Proxy-Authorization Authentication Cookie Set-Cookie X-Api-Key X-Functions-Key DD-APPLICATION-KEY"
    " DD-API-KEY X-Bin-Master-Key X-Parse-Master-Key X-Auth-Token Ocp-Apim-Subscription-Key X-Amz-Security-Token"
    " X-Authorization X-Forwarded-Authorization X-Auth-Key X-Secret-Key"
).split()
NO_SECRET_NAMES = (
    "keyboard monkey keyfile-format tokenizer author authorize compass pass-through max-tokens maxTokens"
    " max_output_tokens tokens-per-minute keys public-key primary-key sort-key idempotency-key Sec-WebSocket-Key"
    " Access-Control-Allow-Credentials secretary path patch pattern spat passive bypass bearings turkey whiskey hockey"
    " token_endpoint token_endpoint_auth_method scopes_supported code_challenge_methods_supported jwks_uri client_id"
    " progressToken oauth-callback Mcp-Session-Id session_id sessionId requestState token_type expires_in"
    " port host pwdir password-file token_url name"
).split()
LOOK_ALIKES = (
    "9df0d44c1e1f5a2b3c4d5e6f708192a3b4c5d6e7",  # a commit hash
    "3700935",
    "123e4567-e89b-12d3-a456-426614174000",
    "d41d8cd98f00b204e9800998ecf8427e",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP",
    "sk-learn-tools",
    "sk-learn-contrib",
    "task-runner-for-everything-else",
    "disk-usage-analyzer-for-servers",
    "npm_config_registry",
    "npm_lifecycle_event",
    "hf_hub_download",
    "hf_transfer",
    "pypi-server",
    "fc-cache",
    "fc-match",
    "xai-org",
    "pplx-70b-online",
    "gsk_test",
    "dapi-server",
    "SG.UTF-8",
    "sk_SK",
    "key-value-store",
    "re_match_object",
    "ASIA-PACIFIC",
    "AKIA",
    "eyJ",
    "ghp_",
    "secret_sauce_recipes",
    "@scope/sk-learn-tools@1.2.0",
    "sk-short",
    "ghp_short",
    "eyJ.eyJ.x",
    "a tight sketch",
    "--keyboard",
    "--keyboard=qwerty",
    "monkey=banana",
    "--keyfile-format=pem",
    "tokenizer=cl100k_base",
    "author=someone",
    "--pass-through",
    "compass=north",
    "max_tokens=4096",
    "1.2.3-beta.4+build.5",
    "python-httpx/0.28.1",
    "/usr/share/keyrings/key-ring.gpg",
    "/home/user/projects/token-bucket/src/main.rs",
    "C:\\Program_Files\\node.exe",
    "text/event-stream",
    "application/json;charset=utf-8",
    "2026-11-22T16:25:42Z",
    "http://127.0.0.1:8000/mcp",
    "https://example.com/a/b?page=2&sort=asc",
    "https://hooks.slack.com/",
    "https://mcp.zapier.com/api/mcp/mcp",
    "https://mcp.composio.dev/",
    "ssh://git@github.com:22/o/r.git",
    "mailto:someone@example.com",
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
    'W/"33a64df551425fcc55e4d42a148795d9f25f89d4"',
    "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
)
