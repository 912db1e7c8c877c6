import os

os.environ["TEXTUAL_FPS"] = "5"  # the tests draw the screen when all is done that was asked for
import textual.constants  # noqa: F401 (it reads that once)

del os.environ["TEXTUAL_FPS"]
