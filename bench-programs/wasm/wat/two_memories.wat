;; Two memories: characters of one are counted in the other, and both are copied to and fro
;; test: 550
;; bench: 18000
;; features: multi-memory
(module
  (memory $text (export "memory") 1)
  (memory $counts 1)

  (func (export "run") (param $rounds i32) (result i64)
    (local $round i32) (local $i i32) (local $at i32) (local $sum i64)
    (memory.fill $counts (i32.const 0) (i32.const 0) (i32.const 65536))
    (block $done
      (loop $again
        (br_if $done (i32.ge_u (local.get $round) (local.get $rounds)))
        (local.set $i (i32.const 0))
        (block $written
          (loop $next
            (br_if $written (i32.ge_u (local.get $i) (i32.const 8000)))
            (i32.store8 $text (local.get $i) (i32.mul (local.get $i) (i32.add (local.get $round) (local.get $i))))
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (br $next)))
        (local.set $i (i32.const 0))
        (block $counted
          (loop $next
            (br_if $counted (i32.ge_u (local.get $i) (i32.const 8000)))
            (local.set $at (i32.shl (i32.load8_u $text (local.get $i)) (i32.const 2)))
            (i32.store $counts (local.get $at) (i32.add (i32.load $counts (local.get $at)) (i32.const 1)))
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (br $next)))
        (memory.copy $text $counts (i32.const 8192) (i32.const 0) (i32.const 1024))
        (local.set $sum (i64.add (i64.mul (local.get $sum) (i64.const 31))
          (i64.load32_u $text offset=8192 (i32.and (i32.shl (local.get $round) (i32.const 2)) (i32.const 1023)))))
        (local.set $round (i32.add (local.get $round) (i32.const 1)))
        (br $again)))
    (local.get $sum)))
