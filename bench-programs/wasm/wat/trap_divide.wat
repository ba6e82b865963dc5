;; A division whose divisor counts down to zero, with a total kept in memory and a count in a global
;; test: 2000000
;; bench: 50000000
;; trap: integer-division-by-zero
(module
  (memory (export "memory") 1)
  (global $count (export "count") (mut i32) (i32.const 0))

  (func (export "run") (param $divisor i32) (result i64)
    (i64.store (i32.const 16) (i64.const 0))
    (global.set $count (i32.const 0))
    (loop $next
      (global.set $count (i32.add (global.get $count) (i32.const 1)))
      (i64.store (i32.const 16) (i64.add (i64.load (i32.const 16))
        (i64.extend_i32_u (i32.div_u (i32.const 1000000007) (local.get $divisor)))))
      (local.set $divisor (i32.sub (local.get $divisor) (i32.const 1)))
      (br $next))
    (unreachable))

  (func (export "seen") (result i64)
    (i64.add (i64.mul (i64.load (i32.const 16)) (i64.const 31)) (i64.extend_i32_u (global.get $count)))))
