"""A session as one HTML page that opens offline and contains the whole capture.

The JavaScript, the styles and the frame of the page are files beside these modules; there is no build step.
"""
