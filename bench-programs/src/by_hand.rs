//! Programs as somebody would write them who optimizes by hand: what a loop optimizer can be compared with.

/// The program of this name, rewritten by hand: CLIF of a function with the same name and signature that does the same for all inputs with which the
/// program does not trap, provided that its arrays do not overlap. Nothing if nobody has rewritten it.
pub fn by_hand(name: &str) -> Option<&'static str> {
    BY_HAND.iter().find(|(program, _)| *program == name).map(|&(_, text)| text)
}

static BY_HAND: &[(&str, &str)] = &[
    ("both-conditions", include_str!("../kernels/by_hand/both_conditions.clif")),
    ("boxed-lookup", include_str!("../kernels/by_hand/boxed_lookup.clif")),
    ("boxed-sum", include_str!("../kernels/by_hand/boxed_sum.clif")),
    ("clamped-neighbours", include_str!("../kernels/by_hand/clamped_neighbours.clif")),
    ("dead-loop", include_str!("../kernels/by_hand/dead_loop.clif")),
    ("extremes", include_str!("../kernels/by_hand/extremes.clif")),
    ("few-each", include_str!("../kernels/by_hand/few_each.clif")),
    ("guarded-division", include_str!("../kernels/by_hand/guarded_division.clif")),
    ("known-count", include_str!("../kernels/by_hand/known_count.clif")),
    ("known-divisor", include_str!("../kernels/by_hand/known_divisor.clif")),
    ("late-check", include_str!("../kernels/by_hand/late_check.clif")),
    ("middle-exit", include_str!("../kernels/by_hand/middle_exit.clif")),
    ("numbered", include_str!("../kernels/by_hand/numbered.clif")),
    ("product", include_str!("../kernels/by_hand/product.clif")),
    ("rare-call", include_str!("../kernels/by_hand/rare_call.clif")),
    ("rare-cells", include_str!("../kernels/by_hand/rare_cells.clif")),
    ("running-total", include_str!("../kernels/by_hand/running_total.clif")),
    ("skip-zeros", include_str!("../kernels/by_hand/skip_zeros.clif")),
    ("stop-flag", include_str!("../kernels/by_hand/stop_flag.clif")),
    ("two-parts", include_str!("../kernels/by_hand/two_parts.clif")),
    ("weighted-index", include_str!("../kernels/by_hand/weighted_index.clif")),
];
