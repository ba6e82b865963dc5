;; Doubles that grow until they do not fit into 32 bits, converted in a loop
;; test: 2000000
;; bench: 80000000
;; trap: integer-overflow
(module
  (memory (export "memory") 1)

  ;; The values begin so low that the conversion of number `count` fails.
  (func (export "run") (param $count i32) (result i64)
    (local $value f64) (local $i i32)
    (i64.store (i32.const 8) (i64.const 0))
    (local.set $value (f64.sub (f64.const 2147483648) (f64.convert_i32_u (local.get $count))))
    (loop $next
      (i32.store (i32.const 16) (local.get $i))
      (i64.store (i32.const 8) (i64.add (i64.mul (i64.load (i32.const 8)) (i64.const 31))
        (i64.extend_i32_s (i32.trunc_f64_s (local.get $value)))))
      (local.set $value (f64.add (local.get $value) (f64.const 1)))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br $next))
    (unreachable))

  (func (export "seen") (result i64)
    (i64.add (i64.load (i32.const 8)) (i64.load32_u (i32.const 16)))))
