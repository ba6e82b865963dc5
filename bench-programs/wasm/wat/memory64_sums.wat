;; Memory with 64-bit addresses: prefix sums forth and back, with large offsets and indices that are computed in 32 bits
;; test: 72
;; bench: 2300
;; features: memory64
(module
  (memory (export "memory") i64 8)

  (func $fill (param $count i64)
    (local $i i64)
    (block $done
      (loop $next
        (br_if $done (i64.ge_u (local.get $i) (local.get $count)))
        (i64.store offset=65536 (i64.mul (local.get $i) (i64.const 8)) (i64.mul (local.get $i) (local.get $i)))
        (local.set $i (i64.add (local.get $i) (i64.const 1)))
        (br $next))))

  (func $prefix (param $count i64)
    (local $i i64) (local $sum i64)
    (block $done
      (loop $next
        (br_if $done (i64.ge_u (local.get $i) (local.get $count)))
        (local.set $sum (i64.add (local.get $sum)
          (i64.load offset=65536 (i64.shl (local.get $i) (i64.const 3)))))
        (i64.store offset=65536 (i64.shl (local.get $i) (i64.const 3)) (local.get $sum))
        (local.set $i (i64.add (local.get $i) (i64.const 1)))
        (br $next))))

  ;; From the last to the first, with a 32-bit counter.
  (func $backwards (param $count i32)
    (local $i i32) (local $address i64)
    (local.set $i (i32.sub (local.get $count) (i32.const 2)))
    (block $done
      (loop $next
        (br_if $done (i32.lt_s (local.get $i) (i32.const 0)))
        (local.set $address (i64.mul (i64.extend_i32_u (local.get $i)) (i64.const 8)))
        (i64.store offset=65536 (local.get $address)
          (i64.xor (i64.load offset=65536 (local.get $address)) (i64.load offset=65544 (local.get $address))))
        (local.set $i (i32.sub (local.get $i) (i32.const 1)))
        (br $next))))

  (func (export "run") (param $rounds i32) (result i64)
    (local $round i32) (local $sum i64)
    (call $fill (i64.const 20000))
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $round) (local.get $rounds)))
        (call $prefix (i64.const 20000))
        (call $backwards (i32.const 20000))
        (local.set $sum (i64.add (i64.mul (local.get $sum) (i64.const 31))
          (i64.load offset=65536 (i64.mul (i64.const 8) (i64.rem_u (i64.extend_i32_u (local.get $round)) (i64.const 20000))))))
        (local.set $round (i32.add (local.get $round) (i32.const 1)))
        (br $next)))
    (i64.add (local.get $sum) (memory.size))))
