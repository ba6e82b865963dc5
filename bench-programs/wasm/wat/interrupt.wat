;; An endless loop that counts in memory: for tests that interrupt it
;; endless: yes
(module
  (memory (export "memory") 1)
  (func (export "run") (param $step i32) (result i64)
    (loop $again
      (i64.store (i32.const 0) (i64.add (i64.load (i32.const 0)) (i64.extend_i32_u (local.get $step))))
      (br $again))
    (unreachable)))
