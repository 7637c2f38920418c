"""How methods are called wherever people read: the one place for labels."""

LABELS = {
    "tofu": "TOFU",
    "ra-tofu": "RA-TOFU",
    "tofu-fh": "TOFU, full history",
    "ra-tofu-fh": "RA-TOFU, full history",
    "zf-oful": "zero-filled OFUL",
    "uniform": "uniform",
}
