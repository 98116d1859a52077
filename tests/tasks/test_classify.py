"""Target ranks and predicted classes, counted per block without sorting."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from equipoise.errors import InputError, NotFiniteError, ParameterError, ShapeError
from equipoise.evidence.kernels import rank_counts_llvm
from equipoise.evidence.kernels.rank_counts import ClassColumns, NumpyRankCounter
from equipoise.evidence.kernels.rank_counts_gpu import supports_fused_kernel
from equipoise.evidence.kernels.rank_counts_llvm import should_use_llvm
from equipoise.evidence.kernels.threshold_counts import InvalidScoreError
from equipoise.evidence.labels import Labels
from equipoise.evidence.ranking import Ranking
from equipoise.tasks.classification import classify

FEW_VALUES = st.sampled_from([-np.inf, -2.0, 0.0, 1.0, 3.5])
"""Values that tie often."""


@st.composite
def cases(draw):
    """Scores with many ties, targets, and some columns that are padding."""
    rows, width = draw(st.integers(1, 9)), draw(st.integers(2, 12))
    scores = draw(arrays.arrays(np.float32, (rows, width), elements=FEW_VALUES))
    padding = draw(st.sets(st.integers(0, width - 1), max_size=width - 1))
    allowed = [code for code in range(width) if code not in padding]
    targets = draw(st.lists(st.sampled_from(allowed), min_size=rows, max_size=rows))
    return scores, np.array(targets), sorted(padding)


def rank_columns_by_loop(scores, targets, padding):
    """The columns of a classification by a loop over all classes."""
    for row, target in zip(scores, targets, strict=True):
        codes = [code for code in range(len(row)) if code not in padding]
        equal = [code for code in codes if row[code] == row[target] and code != target]
        largest = max(row[code] for code in codes)
        best = [code for code in codes if row[code] == largest]
        yield (
            sum(row[code] > row[target] for code in codes),
            len(equal),
            sum(str(code) > str(target) for code in equal),
            best[0],
            len(best) > 1,
        )


def rank_columns(classification):
    ranking, labels = classification.ranking, classification.labels
    columns = (ranking.above, ranking.tied, ranking.before, labels.predicted, labels.tied_top)
    return list(zip(*(column.tolist() for column in columns), strict=True))


@given(cases(), st.integers(1, 400))
def test_counts_agree_with_a_loop_for_any_block_size(case, block_bytes):
    scores, targets, padding = case
    classification = classify(scores, targets, padding=padding, block_bytes=block_bytes)
    assert rank_columns(classification) == list(rank_columns_by_loop(scores, targets, padding))
    assert classification.classes == scores.shape[1] - len(padding)


@pytest.mark.slow
@given(cases(), st.integers(0, 2), st.sampled_from([np.float32, np.float64]), st.integers(0, 3))
def test_the_compiled_kernel_agrees_with_a_loop(case, n_copies, dtype, shift):
    pytest.importorskip("llvmlite")
    scores, targets, padding = case
    scores = np.concatenate([scores] + [scores[:, :1] - shift] * (60 * n_copies), axis=1).astype(dtype)
    classification = classify(scores, targets, padding=padding, compiled=True)
    assert rank_columns(classification) == list(rank_columns_by_loop(scores, targets, padding))


@pytest.mark.parametrize("width", [1, 63, 64, 65, 4095, 4096, 4097, 9000])
@pytest.mark.parametrize("kind", ["any", "negative", "few", "zeros"])
def test_the_compiled_kernel_agrees_with_numpy_at_every_width(width, kind):
    pytest.importorskip("llvmlite")
    rng = np.random.default_rng(width)
    scores = rng.standard_normal((40, width)).astype(np.float32)
    scores = {
        "any": scores,
        "negative": -np.abs(scores) - 1,
        "few": np.round(scores),
        "zeros": np.where(scores > 0, 0.0, -0.0).astype(np.float32),
    }[kind]
    targets = rng.integers(0, width, 40)
    assert rank_columns(classify(scores, targets, compiled=True)) == rank_columns(
        classify(scores, targets, compiled=False)
    )
    compiled, plain = (
        classify(scores, targets, compiled=is_compiled, probabilities=True) for is_compiled in (True, False)
    )
    assert (compiled.confidence == plain.confidence).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", [1, 2, 15, 16, 17, 63, 64, 65, 127, 129, 1000, 1023, 2033, 2034, 4081, 4082, 9001])
@pytest.mark.parametrize("kind", ["distinct", "few values", "excluded classes"])
def test_the_compiled_kernel_agrees_with_numpy_for_unaligned_rows(dtype, width, kind):
    """Rows that start inside a cache line, with scores around them that must not be counted."""
    rng = np.random.default_rng(width)
    rows = 9
    for before, after in ((0, 0), (1, 0), (3, 2), (13, 20)):
        scores = rng.standard_normal((rows, before + width + after)).astype(dtype)
        if kind == "few values":
            scores = np.round(scores)
        if kind == "excluded classes":
            scores[rng.random(scores.shape) < 0.5] = -np.inf
            scores[0] = -np.inf
        scores[:, :before], scores[:, before + width :] = 99.0, np.nan
        block, targets = scores[:, before : before + width], rng.integers(0, width, rows)
        block[-1, -1], block[-2, 0] = 5.0, 6.0  # the largest score in the last and in the first column
        assert rank_counts_llvm.should_use_llvm(block, requested=True)
        columns = rank_counts_llvm.all_columns(width)
        compiled = rank_counts_llvm.LlvmRankCounter(columns, rows)(block, targets)
        plain = NumpyRankCounter(columns, rows)(block, targets)
        for name in ("above", "tied", "before", "predicted", "tied_top"):
            np.testing.assert_array_equal(getattr(compiled, name), getattr(plain, name), err_msg=f"{name} {before}")
        np.testing.assert_array_equal(compiled.rank_histogram(width), plain.rank_histogram(width))
        block[4, width // 2] = np.nan
        with pytest.raises(InvalidScoreError) as error:
            rank_counts_llvm.LlvmRankCounter(columns, rows)(block, targets)
        assert error.value.row == 4


@pytest.mark.parametrize("nan", [np.nan, -np.nan])
@pytest.mark.parametrize("column", [0, 70, 5000])
def test_the_compiled_kernel_reports_the_row_of_a_nan(nan, column):
    pytest.importorskip("llvmlite")
    scores = np.zeros((3, 5001), dtype=np.float32)
    scores[2, column] = nan
    with pytest.raises(NotFiniteError, match="row 2"):
        classify(scores, [1, 1, 1], compiled=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("distance", [1, 16, 32, 64, 128, 2048, 4096, 8192])
def test_the_compiled_kernel_finds_tied_maxima_at_any_distance(distance, dtype):
    pytest.importorskip("llvmlite")
    scores = np.random.default_rng(distance).random((200, 9001)).astype(dtype)
    first = np.arange(200) * 4
    scores[np.arange(200), first] = 2.0
    scores[::2, :][np.arange(100), first[::2] + distance] = 2.0
    classification = classify(scores, np.full(200, 9000), compiled=True)
    assert classification.labels.predicted.tolist() == first.tolist()
    assert classification.tied_top.tolist() == [True, False] * 100


@pytest.mark.parametrize("width", [1, 2, 64, 65])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nan_targets_of_the_compiled_kernel_raise_not_finite_error(width, dtype):
    pytest.importorskip("llvmlite")
    scores = np.zeros((3, width), dtype=dtype)
    scores[1, 0] = np.nan
    with pytest.raises(NotFiniteError, match="row 1 "):
        classify(scores, [0, 0, 0], compiled=True)


@pytest.mark.parametrize("target", [-1, 5])
def test_targets_outside_of_the_row_raise_input_error(target):
    pytest.importorskip("llvmlite")
    scores, targets = np.eye(5, dtype=np.float32), np.arange(5)
    assert not classify(scores, targets, compiled=True).ranking.above.any()
    targets[3] = target
    with pytest.raises(InputError, match="row 3 "):
        classify(scores, targets)


@pytest.fixture
def uncompiled_kernels(monkeypatch):
    """No kernel is compiled yet, and 30 scores are sufficient to compile one."""
    kernels = rank_counts_llvm._CompiledKernels()
    monkeypatch.setattr(rank_counts_llvm, "_KERNELS", kernels)
    monkeypatch.setattr(rank_counts_llvm, "MIN_SCORES_TO_COMPILE", 30)
    return kernels


def test_kernels_are_compiled_after_enough_scores_of_a_dtype(uncompiled_kernels):
    pytest.importorskip("llvmlite")
    scores = np.eye(3, dtype=np.float32)
    is_compiled = []
    for _ in range(5):
        classify(scores, [0, 1, 2])
        is_compiled.append(bool(uncompiled_kernels.functions))
    assert is_compiled == [False, False, False, True, True]
    assert should_use_llvm(scores)
    assert not should_use_llvm(scores.astype(np.float64)), "every dtype has a separate kernel"
    assert not should_use_llvm(scores, False)
    assert not should_use_llvm(scores.astype(np.float16))
    assert not should_use_llvm(scores[:, ::2])


def test_one_large_matrix_compiles_the_kernel(uncompiled_kernels):
    pytest.importorskip("llvmlite")
    scores = np.random.default_rng(0).standard_normal((10, 7))
    classify(scores, np.zeros(10, dtype=int))
    assert set(uncompiled_kernels.functions) == {np.dtype(np.float64)}


def test_missing_llvmlite_is_logged_once_and_numpy_counts(uncompiled_kernels, monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "llvmlite.binding", None)
    rank_counts_llvm.compile_rank_rows.cache_clear()
    scores, targets = np.random.default_rng(0).standard_normal((10, 7)), np.arange(10) % 7
    counts = [rank_columns(classify(scores, targets)) for _ in range(3)]
    assert counts == [list(rank_columns_by_loop(scores, targets, []))] * 3
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "[fast]" in caplog.text


@pytest.mark.engines("torch")
@given(cases())
def test_tensors_give_the_counts_of_arrays(case):
    torch = pytest.importorskip("torch")
    scores, targets, padding = case
    # numpy has no bfloat16, so torch counts these tensors.
    tensor = torch.tensor(scores).to(torch.bfloat16)
    classification = classify(tensor, torch.tensor(targets), padding=padding, probabilities=True)
    expected = classify(scores, targets, padding=padding, probabilities=True)
    assert rank_columns(classification) == rank_columns(expected)
    np.testing.assert_allclose(classification.confidence, expected.confidence, rtol=1e-5)
    np.testing.assert_allclose(classification.target_probability, expected.target_probability, rtol=1e-5)


@pytest.mark.parametrize("width", [3, 1000, 2041, 9000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int32])
def test_evidence_agrees_with_the_general_builders(width, dtype):
    rng = np.random.default_rng(width)
    scores = rng.normal(0, 40, size=(23, width)).astype(dtype)
    targets = rng.integers(0, width, 23)
    classification = classify(scores, targets, block_bytes=1 << 14)
    for from_classify, from_builder in (
        (classification.ranking, Ranking.from_scores(scores, targets)),
        (classification.labels, Labels.from_logits(scores, targets)),
    ):
        for name, array in from_builder.to_arrays().items():
            np.testing.assert_array_equal(from_classify.to_arrays()[name], array, err_msg=name)


@pytest.mark.parametrize("width", [100, 417])
@pytest.mark.parametrize("boost", [0.0, 2.0, 4.0, 9.0])
def test_targets_of_any_rank_are_counted_exactly(width, boost):
    rng = np.random.default_rng(width)
    scores = rng.normal(size=(90, width)).round(2)
    targets = rng.integers(2, width, 90)
    scores[np.arange(90), targets] += boost
    best = scores[:40].argmax(axis=1)
    scores[np.arange(40), (best + 1) % width] = scores[np.arange(40), best]
    scores[40:50] = -np.inf
    for padding in (0, [0, 1]):
        classification = classify(scores, targets, padding=padding)
        assert rank_columns(classification) == list(rank_columns_by_loop(scores, targets, np.atleast_1d(padding)))


@pytest.mark.parametrize("boost", [0.0, 4.0, 9.0])
def test_nan_is_found_behind_targets_of_rank_one(boost):
    scores = np.random.default_rng(0).normal(size=(90, 500))
    scores[:, 7] += boost
    scores[[61, 70], 99] = np.nan
    with pytest.raises(NotFiniteError, match="row 61 "):
        classify(scores, np.full(90, 7))


@given(st.sets(st.integers(0, 10**7), min_size=1, max_size=40))
def test_columns_have_the_order_of_their_names(codes):
    columns = ClassColumns(np.array(sorted(codes)))
    names = columns.codes.astype(str)
    np.testing.assert_array_equal(names[columns.order.argsort()], np.sort(names))


def test_padding_classes_are_never_candidates():
    scores = np.array([[1.0, 9.0, 2.0, np.nan, 0.0]])
    classification = classify(scores, [2], padding=[1, 3])
    assert rank_columns(classification) == [(0, 0, 0, 2, False)]
    assert classification.classes == 3


def test_strided_arrays_give_the_counts_of_contiguous_arrays():
    scores = np.asfortranarray(np.random.default_rng(0).normal(size=(20, 30)))
    targets = np.arange(20)
    assert rank_columns(classify(scores[::2, ::-1], targets[::2])) == rank_columns(
        classify(np.ascontiguousarray(scores[::2, ::-1]), targets[::2])
    )


def test_targets_unseen_in_training_are_not_answerable():
    classification = classify(np.eye(4), [0, 1, 2, 3], unseen=[1, 3])
    assert classification.answerable.tolist() == [True, False, True, False]
    assert classification.take(np.flatnonzero(classification.answerable)).ranking.unit_ids.tolist() == [0, 2]


def test_confidence_is_the_softmax():
    rng = np.random.default_rng(0)
    scores = rng.normal(0, 3, size=(50, 7))
    scores[0] = -np.inf
    targets = rng.integers(1, 7, 50)
    classification = classify(scores, targets, padding=0, probabilities=True)
    probabilities = np.exp(scores[:, 1:])
    probabilities[0] = 1.0
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(classification.confidence, probabilities.max(axis=1))
    np.testing.assert_allclose(classification.target_probability, probabilities[np.arange(50), targets - 1])
    assert classify(scores, targets).confidence is None


def test_no_rows_give_no_units():
    assert len(classify(np.zeros((0, 3)), [])) == 0


def test_classify_restores_the_buffer_size_of_numpy():
    before = np.getbufsize()
    classify(np.eye(3), [0, 1, 2])
    assert np.getbufsize() == before


@pytest.mark.parametrize(
    ("scores", "targets", "options", "error_type", "fragment"),
    [
        (np.zeros((2, 2, 3)), [0, 1], {}, ShapeError, "shape (2, 2, 3)"),
        (np.zeros((2, 0)), [0, 1], {}, ShapeError, "no columns"),
        (np.array([["a", "b"]]), [0], {}, InputError, "not real numbers"),
        (np.zeros((2, 3)), [0], {}, ShapeError, "1 targets for 2 rows"),
        (np.zeros((2, 3)), [0, 3], {}, InputError, "target 3 of row 1 is not one of the 3 classes"),
        (np.zeros((2, 3)), [-1, 0], {}, InputError, "target -1 of row 0"),
        (np.zeros((1, 3)), ["home"], {}, InputError, "names, not columns"),
        (np.zeros((2, 3)), [0.5, 1], {}, InputError, "names, not columns"),
        (np.zeros((2, 3)), [[0], [1]], {}, ShapeError, "shape (2, 1)"),
        (np.zeros((2, 3)), [0, 1], {"padding": 0}, InputError, "1 of 2 rows are padding"),
        (np.zeros((2, 3)), [0, 0], {"padding": 0}, InputError, "every row is padding"),
        (np.zeros((1, 2)), [0], {"padding": [0, 1]}, ParameterError, "all 2 classes are padding"),
        (np.zeros((1, 2)), [0], {"padding": 2}, ParameterError, "padding class 2"),
        (np.zeros((1, 2)), [0], {"padding": [0.5]}, ParameterError, "float64 values"),
        (np.zeros((1, 2)), [0], {"unseen": -1}, ParameterError, "unseen class -1"),
        (np.zeros((1, 4)), [1], {"ks": (1, 4), "padding": 0}, ParameterError, "k = 4 is more than the 3"),
        (np.zeros((1, 4)), [1], {"ks": (0,)}, ParameterError, "k = 0 is not a cutoff"),
        (np.zeros((1, 4)), [1], {"ks": (1, 1)}, ParameterError, "twice"),
        (np.array([[0, np.inf]]), [1], {"probabilities": True}, NotFiniteError, "no softmax"),
    ],
)
def test_bad_input_raises_an_error_with_subject_and_hint(scores, targets, options, error_type, fragment):
    with pytest.raises(error_type) as error:
        classify(scores, targets, **options)
    assert fragment in error.value.message
    assert error.value.hint or "shape (2, 1)" in fragment


@pytest.mark.parametrize("column", [0, 1, 2])
@pytest.mark.parametrize("library", ["numpy", pytest.param("torch", marks=pytest.mark.engines("torch"))])
def test_nan_raises_not_finite_error_with_the_row(column, library):
    scores = np.zeros((700, 3), dtype=np.float32)
    scores[432, column] = np.nan
    if library == "torch":
        scores = pytest.importorskip("torch").tensor(scores).bfloat16()
    with pytest.raises(NotFiniteError, match="row 432 "):
        classify(scores, np.full(700, 1), block_bytes=1200)


@pytest.mark.engines("torch")
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("width", [2, 40, 1000, 1187, 5000, 20_000])
def test_gpu_counts_agree_with_the_host(dtype, width):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("there is no CUDA device")
    rng = np.random.default_rng(width)
    scores = torch.tensor(rng.integers(-50, 50, (300, width)) / 7).to(getattr(torch, dtype))
    scores[0] = -torch.inf
    targets = rng.integers(1, width, 300)
    on_host = classify(scores.double().numpy(), targets, padding=0, probabilities=True)
    on_device = classify(scores.cuda(), torch.tensor(targets).cuda(), padding=0, probabilities=True)
    assert supports_fused_kernel(scores.cuda())
    assert rank_columns(on_device) == rank_columns(on_host)
    np.testing.assert_allclose(on_device.confidence, on_host.confidence, rtol=1e-3)
    scores[299, width - 1] = torch.nan
    with pytest.raises(NotFiniteError, match="row 299 "):
        classify(scores.cuda(), targets)


MEMORY = """
import sys, numpy as np
from pathlib import Path
from equipoise.io.arrays import read_array
from equipoise.tasks.classification import classify

def peak():
    return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) / 1024

scores, targets = read_array(sys.argv[1]), np.load(sys.argv[2])
classify(np.zeros((9, 9)) + np.arange(9), np.zeros(9, int))
before = peak()
found = classify(scores, targets, compiled=False)  # loading LLVM takes 80 MB, and its blocks have 64
print(peak() - before, found.ranking.above.sum(), found.labels.predicted.sum())
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
@pytest.mark.parametrize("suffix", [".npy", ".npz", ".safetensors"])
def test_mapped_files_are_read_in_blocks(tmp_path, suffix):
    rng = np.random.default_rng(0)
    scores = rng.random((24_000, 1000), dtype=np.float32)
    targets = rng.integers(0, 1000, len(scores))
    np.save(tmp_path / "y.npy", targets)
    path = tmp_path / f"scores{suffix}"
    if suffix == ".npy":
        np.save(path, scores)
    elif suffix == ".npz":
        np.savez(path, scores)
    else:
        pytest.importorskip("safetensors.numpy").save_file({"scores": scores}, path)
    process = subprocess.run(
        [sys.executable, "-c", MEMORY, str(path), str(tmp_path / "y.npy")],
        check=True,
        capture_output=True,
        text=True,
    )
    megabytes, above, predicted = map(float, process.stdout.split())
    assert megabytes < 24  # the file has 92
    target_scores = scores[np.arange(len(scores)), targets][:, None]
    assert above == np.count_nonzero(scores > target_scores)
    assert predicted == scores.argmax(axis=1).sum()


def test_changes_to_a_private_mapping_are_kept(tmp_path):
    np.save(tmp_path / "v.npy", np.zeros((600, 1000), dtype=np.float32))
    scores = np.load(tmp_path / "v.npy", mmap_mode="c")
    scores[:, 5] = 1.0
    view = scores[:]
    view.flags.writeable = False
    classify(view, np.full(600, 5))
    assert (scores[:, 5] == 1.0).all()
    assert (classify(scores, np.full(600, 5)).ranking.above == 0).all()


@pytest.mark.engines("torch")
@pytest.mark.parametrize("block_bytes", [None, 100])
def test_scores_sent_to_a_device_give_the_counts_of_the_host(block_bytes):
    pytest.importorskip("torch")
    from equipoise.tasks.classification import classify_on_device

    rng = np.random.default_rng(1)
    scores, targets = rng.integers(0, 5, (40, 7)).astype(np.float32), rng.integers(1, 7, 40)
    on_device = classify_on_device("cpu", scores, targets, padding=0, block_bytes=block_bytes)
    assert rank_columns(on_device) == rank_columns(classify(scores, targets, padding=0))
    assert on_device.ranking.unit_ids.tolist() == list(range(40))
