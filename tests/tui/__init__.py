import os

os.environ["TEXTUAL_FPS"] = "1000"  # a drawing is awaited after each key
import textual.constants  # noqa: F401 (it reads that once)

del os.environ["TEXTUAL_FPS"]
