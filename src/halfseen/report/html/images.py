"""Figures inside the page: small, and nothing beside the page is needed to see them."""

import base64
import io
from pathlib import Path

WIDEST = 1120
"""Pixels: wider figures are made smaller."""

_COLORS = 64  # enough for lines and their smoothed edges


def data_uri(png: Path) -> str:
    """Return a picture as a data URI, with few colours so that it is a few ten kilobytes."""
    from PIL import Image

    with Image.open(png) as opened:
        picture = Image.new("RGB", opened.size, "white")
        rgba = opened.convert("RGBA")
        picture.paste(rgba, mask=rgba.getchannel("A"))
    if picture.width > WIDEST:
        height = round(picture.height * WIDEST / picture.width)
        picture = picture.resize((WIDEST, height), Image.Resampling.LANCZOS)
    few = picture.quantize(_COLORS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    buffer = io.BytesIO()
    few.save(buffer, format="PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
