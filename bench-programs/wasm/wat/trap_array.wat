;; An array of the garbage collector whose end is passed: the sum so far is in a struct that a global holds
;; test: 200000
;; bench: 8000000
;; features: gc
;; trap: array-out-of-bounds
(module
  (type $numbers (array (mut i32)))
  (type $cell (struct (field $sum (mut i64)) (field $count (mut i32))))
  (global $cell (mut (ref null $cell)) (ref.null $cell))

  (func (export "run") (param $count i32) (result i64)
    (local $numbers (ref $numbers)) (local $i i32)
    (local.set $numbers (array.new $numbers (i32.const 3) (local.get $count)))
    (global.set $cell (struct.new_default $cell))
    (loop $next
      (struct.set $cell $count (global.get $cell)
        (i32.add (struct.get $cell $count (global.get $cell)) (i32.const 1)))
      (array.set $numbers (local.get $numbers) (local.get $i)
        (i32.mul (local.get $i) (array.get $numbers (local.get $numbers) (local.get $i))))
      (struct.set $cell $sum (global.get $cell)
        (i64.add (i64.mul (struct.get $cell $sum (global.get $cell)) (i64.const 31))
          (i64.extend_i32_u (array.get $numbers (local.get $numbers) (local.get $i)))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br $next))
    (unreachable))

  (func (export "seen") (result i64)
    (i64.add (struct.get $cell $sum (global.get $cell))
      (i64.extend_i32_u (struct.get $cell $count (global.get $cell))))))
