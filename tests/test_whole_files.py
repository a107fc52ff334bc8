"""A file is whole or not there."""

import pytest

from normlens.files import replacing, write_whole


@pytest.mark.parametrize("content", ["‖αf(x)‖\n", b"\x00\xff"])
def test_a_file_is_written_as_it_is_given(tmp_path, content):
    write_whole(tmp_path / "a", content)
    assert (tmp_path / "a").read_bytes() == (content.encode() if isinstance(content, str) else content)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_the_old_file_is_there_until_the_new_one_is_whole(tmp_path):
    write_whole(tmp_path / "a", "old")
    with replacing(tmp_path / "a") as unfinished:
        unfinished.write_text("new")
        assert (tmp_path / "a").read_text() == "old"
    assert (tmp_path / "a").read_text() == "new"


def fail_after(written):
    raise ZeroDivisionError(written)


def test_a_failure_leaves_the_old_file_and_nothing_beside_it(tmp_path):
    write_whole(tmp_path / "a", "old")
    with pytest.raises(ZeroDivisionError), replacing(tmp_path / "a") as unfinished:
        fail_after(unfinished.write_text("half"))
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a": "old"}


def test_a_folder_that_is_not_there_is_an_error_of_the_system(tmp_path):
    with pytest.raises(FileNotFoundError):
        write_whole(tmp_path / "no" / "a", "x")
