"""Scale layouts from Python: conversions, offsets, pictures."""
import re

import numpy as np
import pytest

import blockscale
import oracle

RANDOM = np.random.default_rng(7)


@pytest.mark.parametrize("layout", oracle.LAYOUTS)
def test_conversions_go_there_and_back(layout):
    for rows, columns in ((1, 1), (130, 9), (256, 8), (33, 24)):
        scales = RANDOM.integers(1, 255, (rows, columns)).astype(np.uint8)
        if layout == "linear":
            with pytest.raises(blockscale.InvalidError, match="layout"):
                blockscale.convert_scales(scales, rows, columns, "linear", layout)
            continue
        there = blockscale.convert_scales(scales, rows, columns, "linear", layout)
        assert there.shape == (blockscale.scale_bytes(layout, rows, columns),)
        assert np.array_equal(oracle.linear_scales(there, layout, rows, columns), scales)
        assert np.count_nonzero(there) == scales.size                   # all else is zero
        assert np.array_equal(blockscale.convert_scales(there, rows, columns, layout, "linear"), scales)
        out = np.full_like(there, 9)
        assert blockscale.convert_scales(scales, rows, columns, "linear", layout, out=out) is out
        if not layout.startswith("linear:"):
            assert np.array_equal(out, there)


def test_what_is_refused_is_named():
    scales = np.zeros((4, 4), np.uint8)
    for arguments, words in (((4, 4, "linear", "9x9"), "9x9"), ((5, 4, "linear", "128x4"), "scales has 16 bytes"),
                             ((-1, 4, "linear", "128x4"), "rows=-1")):
        with pytest.raises(blockscale.InvalidError, match=words):
            blockscale.convert_scales(scales, *arguments)
    with pytest.raises(blockscale.InvalidError, match="out has 4 bytes"):
        blockscale.convert_scales(scales, 4, 4, "linear", "128x4", out=np.zeros(4, np.uint8))
    with pytest.raises(blockscale.InvalidError, match="at most"):
        blockscale.show_layout("linear", 1000, 1000)


@pytest.mark.parametrize("layout", oracle.LAYOUTS)
def test_pictures_show_the_offsets(layout):
    rows, columns = 40, 5
    picture = blockscale.show_layout(layout, rows, columns)
    numbers = np.arange(picture.bytes) % 251
    expected = oracle.linear_scales(numbers.astype(np.uint8), layout, rows, columns)
    offsets = np.array(picture.offsets)
    assert np.array_equal(numbers[offsets[:rows, :columns]], expected)
    assert offsets[3, 2] == blockscale.scale_offset(layout, rows, columns, 3, 2)
    shown = str(picture)
    line = next(line for line in shown.splitlines() if line.startswith("r=3 "))
    assert [int(word) for word in re.findall(r"\d+", line)][1:] == picture.offsets[3]
    cells = "".join(line for line in shown.splitlines() if line.startswith("r="))
    assert cells.count("(") == offsets.size - rows * columns
    page = picture._repr_html_()
    assert page.count("<td") == offsets.size and page.count("<tr>") == picture.padded_rows + 1
    assert all(f">{offset}</td>" in page for offset in offsets[0])


def test_layouts_are_described():
    found = blockscale.layouts()
    assert {name.partition(":")[0] for name in oracle.LAYOUTS} <= set(found)
    for name, info in found.items():
        assert info.name == name and info.about and "r" in info.formula


def test_whether_a_layout_fits_a_copy():
    fits, how = blockscale.layout_fits("128x4", 256, 8, "tcgen05.cp")
    assert fits and "byte offset 128" in how
    fits, rule = blockscale.layout_fits("tiles:128x4", 256, 8, "tcgen05.cp")
    assert not fits and "rows 0 and 32" in rule and "PTX ISA 9.7.16.9.2" in rule
    assert blockscale.layout_fits("cdna4_16", 256, 8, "mfma_16")[0]
    with pytest.raises(blockscale.InvalidError, match="copy='wgmma': choose one of tcgen05.cp, tma"):
        blockscale.layout_fits("128x4", 256, 8, "wgmma")
    with pytest.raises(blockscale.InvalidError, match="rows=0"):
        blockscale.layout_fits("128x4", 0, 8, "tma")
