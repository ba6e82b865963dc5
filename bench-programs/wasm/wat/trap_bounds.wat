;; Rounds of stores over the whole memory; the last one runs out of it: what came before must be there
;; test: 2
;; bench: 150
;; trap: memory-out-of-bounds
(module
  (memory (export "memory") 64 64)

  ;; A million words up to the end; in the last round everything is stored two words further.
  (func (export "run") (param $rounds i32) (result i64)
    (local $round i32) (local $at i32) (local $i i32) (local $sum i32)
    (memory.fill (i32.const 0) (i32.const 0) (i32.const 4194304))
    (loop $again
      (local.set $round (i32.add (local.get $round) (i32.const 1)))
      (local.set $at (select (i32.const 194312) (i32.const 194304) (i32.eq (local.get $round) (local.get $rounds))))
      (local.set $i (i32.const 0))
      (loop $next
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 5)) (local.get $i)))
        (i32.store (local.get $at) (local.get $sum))
        (local.set $at (i32.add (local.get $at) (i32.const 4)))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br_if $next (i32.lt_u (local.get $i) (i32.const 1000000))))
      (br_if $again (i32.lt_u (local.get $round) (local.get $rounds))))
    (i64.const -1))

  (func (export "seen") (result i64)
    (local $at i32) (local $sum i64)
    (loop $next
      (local.set $sum (i64.add (i64.mul (local.get $sum) (i64.const 31)) (i64.load32_u (local.get $at))))
      (local.set $at (i32.add (local.get $at) (i32.const 4)))
      (br_if $next (i32.lt_u (local.get $at) (i32.const 4194304))))
    (local.get $sum)))
