;; An assertion in a loop that fails in the end: all elements are below a limit but the last
;; test: 1000000
;; bench: 40000000
;; trap: unreachable-code-reached
(module
  (memory (export "memory") 2)

  (func (export "run") (param $count i32) (result i64)
    (local $i i32) (local $at i32) (local $value i32)
    (memory.fill (i32.const 0) (i32.const 0) (i32.const 131072))
    (block $done
      (loop $next
        (br_if $done (i32.gt_u (local.get $i) (local.get $count)))
        (local.set $at (i32.and (i32.mul (local.get $i) (i32.const 12)) (i32.const 65532)))
        (local.set $value (i32.rem_u (i32.mul (local.get $i) (i32.const 7)) (i32.const 1000)))
        (if (i32.eq (local.get $i) (local.get $count))
          (then (local.set $value (i32.const 5000))))
        (i32.store (local.get $at) (i32.add (i32.load (local.get $at)) (local.get $value)))
        (if (i32.ge_u (local.get $value) (i32.const 1000))
          (then (unreachable)))
        (i32.store offset=65536 (local.get $at) (local.get $i))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br $next)))
    (i64.const -1))

  (func (export "seen") (result i64)
    (local $at i32) (local $sum i64)
    (loop $next
      (local.set $sum (i64.add (i64.mul (local.get $sum) (i64.const 31)) (i64.load32_u (local.get $at))))
      (local.set $at (i32.add (local.get $at) (i32.const 4)))
      (br_if $next (i32.lt_u (local.get $at) (i32.const 131072))))
    (local.get $sum)))
