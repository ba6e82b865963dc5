;; An endless loop without memory, calls or anything else that could be seen
;; endless: yes
(module
  (func (export "run") (param $x i32) (result i64)
    (loop $again
      (local.set $x (i32.add (i32.mul (local.get $x) (i32.const 1103515245)) (i32.const 12345)))
      ;; Never: a square is 0 or 1 modulo 4.
      (br_if $again (i32.ne (i32.mul (local.get $x) (local.get $x)) (i32.const 2))))
    (unreachable)))
