;; Vectors of 128 bits: dot products of floats and integers, shuffled bytes, comparisons and masks
;; test: 1500
;; bench: 50000
;; features: simd
(module
  (memory (export "memory") 2)

  ;; 16384 bytes at 0: byte i is i * 7 + i / 256.
  (func $fill
    (local $i i32)
    (loop $next
      (i32.store8 (local.get $i)
        (i32.add (i32.mul (local.get $i) (i32.const 7)) (i32.shr_u (local.get $i) (i32.const 8))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get $i) (i32.const 16384)))))

  ;; Reverses each group of 16 bytes, from 0 to 16384.
  (func $reverse
    (local $at i32)
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $at) (i32.const 16384)))
        (v128.store offset=16384 (local.get $at)
          (i8x16.shuffle 15 14 13 12 11 10 9 8 7 6 5 4 3 2 1 0
            (v128.load (local.get $at)) (v128.load (local.get $at))))
        (local.set $at (i32.add (local.get $at) (i32.const 16)))
        (br $next))))

  ;; Sum of the products of 16-bit numbers, in two halves, in four lanes.
  (func $dot (result v128)
    (local $at i32) (local $sum v128)
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $at) (i32.const 16384)))
        (local.set $sum (i32x4.add (local.get $sum) (i32x4.dot_i16x8_s
          (v128.load (local.get $at)) (v128.load offset=16384 (local.get $at)))))
        (local.set $at (i32.add (local.get $at) (i32.const 16)))
        (br $next)))
    (local.get $sum))

  ;; How many bytes are larger than the same of the reversed ones.
  (func $larger (result i32)
    (local $at i32) (local $count i32)
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $at) (i32.const 16384)))
        (local.set $count (i32.add (local.get $count) (i32.popcnt (i8x16.bitmask
          (i8x16.gt_u (v128.load (local.get $at)) (v128.load offset=16384 (local.get $at)))))))
        (local.set $at (i32.add (local.get $at) (i32.const 16)))
        (br $next)))
    (local.get $count))

  ;; Four sums of floats made from bytes: 0.5 * byte + sum, never below the byte's own tenth.
  (func $floats (result v128)
    (local $at i32) (local $sum v128) (local $four v128)
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $at) (i32.const 1024)))
        (local.set $four (f32x4.convert_i32x4_u (i32x4.extend_low_i16x8_u (i16x8.extend_low_i8x16_u
          (v128.load32_zero (local.get $at))))))
        (local.set $sum (f32x4.pmax
          (f32x4.add (f32x4.mul (local.get $sum) (f32x4.splat (f32.const 0.5))) (local.get $four))
          (f32x4.mul (local.get $four) (f32x4.splat (f32.const 0.125)))))
        (local.set $at (i32.add (local.get $at) (i32.const 4)))
        (br $next)))
    (local.get $sum))

  (func $add (param $sum i64) (param $four v128) (result i64)
    (i64.add (i64.mul (local.get $sum) (i64.const 31))
      (i64.xor (i64x2.extract_lane 0 (local.get $four)) (i64x2.extract_lane 1 (local.get $four)))))

  (func (export "run") (param $rounds i32) (result i64)
    (local $round i32) (local $sum i64)
    (call $fill)
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $round) (local.get $rounds)))
        (call $reverse)
        (local.set $sum (call $add (local.get $sum) (call $dot)))
        (local.set $sum (call $add (local.get $sum) (call $floats)))
        (local.set $sum (i64.add (local.get $sum) (i64.extend_i32_u (call $larger))))
        (i32.store8 (i32.rem_u (i32.mul (local.get $round) (i32.const 33)) (i32.const 16384)) (local.get $round))
        (local.set $round (i32.add (local.get $round) (i32.const 1)))
        (br $next)))
    (local.get $sum)))
