;; 32 and 64 bits, floats and doubles in one loop, with all conversions, selects and bit counts
;; test: 190000
;; bench: 6300000
(module
  (func (export "run") (param $rounds i32) (result i64)
    (local $i i32) (local $sum i64) (local $float f32) (local $double f64) (local $word i32)
    (local.set $double (f64.const 0.5))
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $i) (local.get $rounds)))
        (local.set $word (i32.xor (i32.rotl (local.get $i) (i32.const 7)) (i32.wrap_i64 (local.get $sum))))
        (local.set $float (f32.add (f32.mul (local.get $float) (f32.const 0.75)) (f32.convert_i32_s (local.get $word))))
        (local.set $double (f64.copysign
          (f64.sqrt (f64.add (f64.abs (local.get $double)) (f64.convert_i64_u (i64.and (local.get $sum) (i64.const 65535)))))
          (f64.promote_f32 (local.get $float))))
        (local.set $sum (i64.add (i64.mul (local.get $sum) (i64.const 31)) (i64.extend_i32_s
          (i32.trunc_sat_f32_s (local.get $float)))))
        (local.set $sum (i64.xor (local.get $sum) (i64.trunc_sat_f64_s (f64.mul (local.get $double) (f64.const 65536)))))
        (local.set $sum (i64.add (local.get $sum) (i64.extend16_s (i64.extend_i32_u (local.get $word)))))
        (local.set $sum (i64.add (local.get $sum) (i64.extend_i32_u (i32.add (i32.clz (local.get $word))
          (i32.popcnt (local.get $word))))))
        (local.set $sum (i64.add (local.get $sum) (i64.ctz (i64.or (local.get $sum) (i64.const 4096)))))
        (local.set $sum (select (i64.add (local.get $sum) (i64.const 1)) (i64.rotr (local.get $sum) (i64.const 3))
          (f64.lt (f64.floor (local.get $double)) (f64.nearest (local.get $double)))))
        (local.set $float (f32.demote_f64 (f64.max (f64.promote_f32 (local.get $float)) (f64.neg (local.get $double)))))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br $next)))
    (i64.xor (local.get $sum) (i64.reinterpret_f64 (local.get $double)))))
