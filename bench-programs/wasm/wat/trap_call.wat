;; Calls through a table in which one entry is empty
;; test: 1000000
;; bench: 30000000
;; trap: indirect-call-to-null
(module
  (type $step (func (param i32) (result i32)))
  (table 16 funcref)
  (elem (i32.const 0) func $double $add $add $double $add $double $double $add)
  (memory (export "memory") 1)

  (func $double (type $step) (i32.mul (local.get 0) (i32.const 2)))
  (func $add (type $step) (i32.add (local.get 0) (i32.const 3)))

  ;; The entry is 8, which is empty, in iteration `count`, and below 8 before.
  (func (export "run") (param $count i32) (result i64)
    (local $i i32) (local $value i32)
    (loop $next
      (i32.store (i32.const 64) (local.get $i))
      (local.set $value (call_indirect (type $step) (local.get $value)
        (select (i32.const 8) (i32.and (local.get $i) (i32.const 7)) (i32.eq (local.get $i) (local.get $count)))))
      (i32.store (i32.const 68) (local.get $value))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br $next))
    (unreachable))

  (func (export "seen") (result i64)
    (i64.load (i32.const 64))))
