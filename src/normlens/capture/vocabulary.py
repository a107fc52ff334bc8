"""Which torch calls move numbers, which keep them, which change them.

Room: names of torch functions, nothing else.
"""

MOVES = frozenset(  # the same numbers in another order or shape
    "view reshape permute transpose swapaxes swapdims movedim contiguous flatten unflatten squeeze unsqueeze clone "
    "__getitem__ narrow select split chunk unbind roll index_select expand view_as reshape_as T mT t".split()
)
SAME = frozenset("dropout to type type_as float half bfloat16 double detach".split())  # the same numbers in place
POINTWISE = frozenset(  # cell by cell: a softmax stays recognisable, an attention output does not stay itself
    "add sub mul div true_divide __add__ __sub__ __mul__ __truediv__ __radd__ __rsub__ __rmul__ __iadd__ __isub__ "
    "__imul__ __itruediv__ add_ sub_ mul_ div_ masked_fill masked_fill_ where tanh clamp maximum minimum "
    "nan_to_num".split()
)
JOINS = frozenset({"cat", "stack", "concat", "concatenate"})
LOOKS = frozenset(  # questions about a tensor that leave it alone
    "size dim numel stride is_contiguous shape ndim dtype device __len__ requires_grad is_cuda layout names data_ptr "
    "is_complex is_floating_point _is_view __hash__ grad_fn is_leaf is_sparse element_size".split()
)
