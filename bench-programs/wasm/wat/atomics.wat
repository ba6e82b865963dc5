;; Shared memory: counters, a lock taken by compare and exchange, a ring buffer, a fence in the loop
;; test: 18000
;; bench: 570000
;; features: threads
(module
  (memory (export "memory") 1 1 shared)

  ;; At 0: a lock. At 8: how often it was taken. At 16: head and at 20: tail of the ring of 64 words at 256. At 1024: 256 counters.
  (func $lock
    (loop $wait
      (br_if $wait (i32.atomic.rmw.cmpxchg (i32.const 0) (i32.const 0) (i32.const 1))))
    (i64.store (i32.const 8) (i64.add (i64.load (i32.const 8)) (i64.const 1))))

  (func $unlock
    (i32.atomic.store (i32.const 0) (i32.const 0)))

  (func $put (param $value i32)
    (local $head i32)
    (local.set $head (i32.atomic.load (i32.const 16)))
    (i32.store offset=256 (i32.mul (i32.const 4) (i32.and (local.get $head) (i32.const 63))) (local.get $value))
    (atomic.fence)
    (i32.atomic.store (i32.const 16) (i32.add (local.get $head) (i32.const 1))))

  ;; The sum of all that waits in the ring.
  (func $drain (result i32)
    (local $tail i32) (local $sum i32)
    (block $empty
      (loop $next
        (local.set $tail (i32.atomic.load (i32.const 20)))
        (br_if $empty (i32.eq (local.get $tail) (i32.atomic.load (i32.const 16))))
        (local.set $sum (i32.add (local.get $sum)
          (i32.load offset=256 (i32.mul (i32.const 4) (i32.and (local.get $tail) (i32.const 63))))))
        (i32.atomic.store (i32.const 20) (i32.add (local.get $tail) (i32.const 1)))
        (br $next)))
    (local.get $sum))

  (func (export "run") (param $rounds i32) (result i64)
    (local $i i32) (local $sum i64)
    (memory.fill (i32.const 0) (i32.const 0) (i32.const 4096))
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $i) (local.get $rounds)))
        (drop (i32.atomic.rmw.add offset=1024
          (i32.mul (i32.const 4) (i32.and (i32.mul (local.get $i) (local.get $i)) (i32.const 255))) (local.get $i)))
        (call $put (local.get $i))
        (call $lock)
        (if (i32.eq (i32.rem_u (local.get $i) (i32.const 50)) (i32.const 49))
          (then (local.set $sum (i64.add (i64.mul (local.get $sum) (i64.const 31)) (i64.extend_i32_u (call $drain))))))
        (call $unlock)
        (drop (i64.atomic.rmw.xor (i32.const 2048) (i64.extend_i32_u (local.get $i))))
        (drop (i32.atomic.rmw16.xchg_u (i32.const 2056) (local.get $i)))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br $next)))
    (local.set $i (i32.const 0))
    (loop $add
      (local.set $sum (i64.add (i64.mul (local.get $sum) (i64.const 31)) (i64.load32_u offset=1024 (local.get $i))))
      (local.set $i (i32.add (local.get $i) (i32.const 4)))
      (br_if $add (i32.lt_u (local.get $i) (i32.const 1024))))
    (i64.add (local.get $sum) (i64.add (i64.load (i32.const 8))
      (i64.add (i64.atomic.load (i32.const 2048)) (i64.atomic.load16_u (i32.const 2056)))))))
