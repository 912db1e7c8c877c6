"""A session as one HTML page that opens offline and holds the whole capture.

The JavaScript, the styles and the frame of the page stand beside these modules as they are; nothing builds them.
"""
