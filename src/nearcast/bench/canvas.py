"""Drawing into an array of pixels and writing it as PNG, with nothing but NumPy: colours, boxes, small capitals.

Enough for maps and tables of figures. A plotting library would be a large dependency for two pictures.
"""

import struct
import zlib
from pathlib import Path

import numpy as np

from nearcast.model.errors import BadInput

Colour = tuple[int, int, int]

BLACK, GREY, PALE, WHITE = (20, 20, 20), (120, 120, 120), (225, 225, 225), (255, 255, 255)
HEAT = np.array([(255, 250, 235), (254, 217, 130), (244, 140, 70), (200, 50, 50), (105, 15, 60)], np.float64)

WIDE, HIGH = 5, 7  # pixels of a letter
# Seven rows of five pixels a letter, each row a digit of base 32.
LETTERS = {
    "A": "EHHVHHH", "B": "UHHUHHU", "C": "EHGGGHE", "D": "UHHHHHU", "E": "VGGUGGV", "F": "VGGUGGG", "G": "EHGNHHF",
    "H": "HHHVHHH", "I": "E44444E", "J": "72222IC", "K": "HIKOKIH", "L": "GGGGGGV", "M": "HRLLHHH", "N": "HHPLJHH",
    "O": "EHHHHHE", "P": "UHHUGGG", "Q": "EHHHLID", "R": "UHHUKIH", "S": "FGGE11U", "T": "V444444", "U": "HHHHHHE",
    "V": "HHHHHA4", "W": "HHHLLLA", "X": "HHA4AHH", "Y": "HHHA444", "Z": "V1248GV", "0": "EHJLPHE", "1": "4C4444E",
    "2": "EH1248V", "3": "V2421HE", "4": "26AIV22", "5": "VGU11HE", "6": "68GUHHE", "7": "V124888", "8": "EHHEHHE",
    "9": "EHHF12C", ".": "00000CC", ",": "0000C48", "-": "000V000", "/": "11248GG", ":": "0CC0CC0", "%": "OP248J3",
    "(": "2488842", ")": "8422248", "+": "044V440", "=": "00V0V00", "_": "000000V", "·": "000C000", "×": "0HA4AH0",
    "?": "EH12404",
}  # fmt: skip


class Canvas:
    """`pixels` by row from the top, column and colour. What lies outside is left out."""

    def __init__(self, width: int, height: int, colour: Colour = WHITE) -> None:
        self.pixels = np.empty((height, width, 3), np.uint8)
        self.pixels[:] = colour

    def box(self, x: int, y: int, width: int, height: int, colour: Colour) -> None:
        self.pixels[max(y, 0) : max(y + height, 0), max(x, 0) : max(x + width, 0)] = colour

    def text(self, x: int, y: int, words: str, colour: Colour = BLACK, size: int = 1, upright: bool = False) -> None:
        """Words with their upper left corner at (x, y); `upright` ones read upwards and begin at the lower left one."""
        mask = letters(words, size)
        if upright:
            mask = np.rot90(mask)
            y -= mask.shape[0]
        rows, columns = np.nonzero(mask)
        rows, columns = rows + y, columns + x
        height, width = self.pixels.shape[:2]
        seen = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
        self.pixels[rows[seen], columns[seen]] = colour

    def write(self, path: Path) -> None:
        height, width = self.pixels.shape[:2]
        rows = np.zeros((height, 1 + 3 * width), np.uint8)  # each row begins with its filter: none
        rows[:, 1:] = self.pixels.reshape(height, -1)
        head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
        parts = ((b"IHDR", head), (b"IDAT", zlib.compress(rows.tobytes(), 6)), (b"IEND", b""))
        try:
            path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*part) for part in parts))
        except OSError as error:
            raise BadInput(f"{path} cannot be written: {error.strerror}") from None


def letters(words: str, size: int = 1) -> np.ndarray:
    """Words as a mask of pixels, in capitals; a letter that is not known is a question mark."""
    out = np.zeros((HIGH, max(text_width(words), 1)), np.bool_)
    for number, letter in enumerate(words.upper()):
        if letter == " ":
            continue
        rows = np.array([int(digit, 32) for digit in LETTERS.get(letter, LETTERS["?"])])
        at = number * (WIDE + 1)
        out[:, at : at + WIDE] = rows[:, None] >> np.arange(WIDE - 1, -1, -1) & 1
    return out.repeat(size, axis=0).repeat(size, axis=1)


def text_width(words: str, size: int = 1) -> int:
    return (len(words) * (WIDE + 1) - 1) * size if words else 0


def heat(share: np.ndarray) -> np.ndarray:
    """Colours from pale (0) to dark (1)."""
    at = np.clip(np.nan_to_num(np.asarray(share, np.float64)), 0, 1) * (len(HEAT) - 1)
    below = np.minimum(at.astype(int), len(HEAT) - 2)
    part = (at - below)[..., None]
    return (HEAT[below] * (1 - part) + HEAT[below + 1] * part).astype(np.uint8)


def is_dark(colours: np.ndarray) -> np.ndarray:
    """Whether white shows better than black on each colour."""
    dark: np.ndarray = colours @ np.array([0.3, 0.6, 0.1]) < 130
    return dark


def readable(colour: np.ndarray) -> Colour:
    """Black or white, whichever shows on a colour."""
    return WHITE if is_dark(colour) else BLACK


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
