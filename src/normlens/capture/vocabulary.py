"""Which torch calls move numbers, which keep them, which change them: names of torch functions, nothing else."""


def _names(words: str) -> frozenset[str]:
    return frozenset(words.split())


RESHAPES = _names("view reshape flatten unflatten squeeze ravel view_as reshape_as")  # the same cells in the same order
TURNS = _names("permute transpose swapaxes swapdims movedim moveaxis T mT t unsqueeze adjoint")  # axes change places
SAME = _names("dropout to type type_as float half bfloat16 double detach")  # the same numbers in place
COPIES = _names("contiguous clone cpu cuda data alias requires_grad_ pin_memory") | SAME
MOVES = RESHAPES | TURNS | _names(  # the same numbers in another order or shape; only the first operand holds them
    "__getitem__ narrow select split chunk unbind roll index_select expand contiguous clone"
)  # fmt: skip
PICKS = _names(  # some cells of the first operand, or all of them in another order
    "__getitem__ narrow select split chunk unbind roll flip fliplr flipud index_select gather take_along_dim unfold "
    "repeat repeat_interleave tile diagonal tensor_split hsplit vsplit dsplit split_with_sizes"
)
POINTWISE = _names(  # cell by cell: a softmax stays recognisable, an attention output does not stay itself
    "add sub mul div true_divide __add__ __sub__ __mul__ __truediv__ __radd__ __rsub__ __rmul__ __iadd__ __isub__ "
    "__imul__ __itruediv__ add_ sub_ mul_ div_ masked_fill masked_fill_ where tanh clamp maximum minimum nan_to_num "
    "pow __pow__ square abs sqrt relu"
)
ALIGNED = POINTWISE | COPIES | _names(  # cell i of the result belongs to the position of cell i of the operands
    "__rtruediv__ __pow__ __rpow__ __neg__ neg abs exp exp_ log log1p expm1 sqrt rsqrt reciprocal square pow sin "
    "cos tan sigmoid relu relu_ relu6 leaky_relu prelu elu celu selu gelu silu mish softplus softsign hardswish "
    "hardtanh erf hardsigmoid logsigmoid softmin floor ceil round trunc sign clip clamp_ clamp_min clamp_max "
    "clamp_min_ clamp_max_ softmax log_softmax dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout "
    "layer_norm rms_norm group_norm batch_norm instance_norm normalize cumsum lerp addcmul addcdiv masked_scatter "
    "masked_scatter_ logical_and logical_or logical_not logical_xor bitwise_and bitwise_or bitwise_not __and__ "
    "__or__ __xor__ __invert__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ eq ne lt le gt ge remainder fmod __mod__ "
    "__floordiv__ floor_divide __rfloordiv__ atan2 atan tril triu int long bool multiply divide subtract negative "
    "sigmoid_ tanh_ silu_ threshold fill_ zero_ copysign hypot xlogy logaddexp pow_ sqrt_ rsqrt_ neg_ "
    "gumbel_softmax"
)  # fmt: skip
JOINT = _names(  # aligned with their operand, but not cell by cell: no activation of a unit alone
    "softmax log_softmax gumbel_softmax softmin layer_norm rms_norm group_norm batch_norm instance_norm normalize "
    "cumsum tril triu masked_scatter masked_scatter_"
)
IN_ROW = (ALIGNED - JOINT) | _names("linear layer_norm rms_norm")  # a vector of each position from that vector alone
LIKE = _names("expand_as view_as reshape_as type_as")  # of the second operand only its form matters
JOINS = _names("cat stack concat concatenate")
POOLS = _names(  # new positions, each made of several old ones
    "avg_pool1d avg_pool2d avg_pool3d max_pool1d max_pool2d max_pool3d adaptive_avg_pool1d adaptive_avg_pool2d "
    "adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d interpolate conv1d conv2d conv3d conv_transpose1d "
    "conv_transpose2d conv_transpose3d pixel_shuffle pixel_unshuffle"
)
LOOKS = _names(  # questions about a tensor that leave it alone, and new tensors that take nothing but its form
    "size dim numel nelement stride is_contiguous shape ndim dtype device __len__ requires_grad is_cuda layout "
    "names data_ptr is_complex is_floating_point _is_view __hash__ grad_fn is_leaf is_sparse element_size is_nested "
    "is_meta is_mkldnn is_quantized is_cpu is_mps is_xpu storage_offset untyped_storage itemsize get_device "
    "is_inference _version has_names __bool__ item tolist __repr__ __format__ all any isfinite isnan isinf allclose "
    "equal grad retains_grad zeros_like ones_like empty_like full_like rand_like randn_like randint_like new_zeros "
    "new_ones new_empty new_full new_tensor"
)
