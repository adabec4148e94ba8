#!/usr/bin/env python3
"""The rooms of gfxsim (gfxsim/docs/design.md): which may include which, and that no includes make a circle."""
import folder

KNOWS = {
    "decode": [],
    "image": [],
    "machine": ["decode", "image"],
    "matrix": ["machine"],
    "instructions": ["decode", "machine", "matrix"],
    "hip": ["machine", "image"],
}

folder.cases("gfxsim", KNOWS, 60)
