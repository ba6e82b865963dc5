;; Globals as loop variables and sums, changed by calls in the loop and read again
;; test: 4200000
;; bench: 140000000
(module
  (global $i (mut i32) (i32.const 0))
  (global $sum (mut i64) (i64.const 0))
  (global $step (export "step") (mut i32) (i32.const 1))
  (global $scale (mut f64) (f64.const 1))
  (global $limit i32 (i32.const 1000))

  ;; Every now and then: changes how far the counter goes and what a value weighs.
  (func $change
    (global.set $step (i32.add (i32.rem_u (global.get $i) (i32.const 3)) (i32.const 1)))
    (global.set $scale (f64.add (f64.mul (global.get $scale) (f64.const 0.5)) (f64.const 0.25))))

  ;; In a loop without a call all globals may stay in registers.
  (func $inner
    (local $until i32)
    (local.set $until (i32.add (global.get $i) (global.get $limit)))
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (global.get $i) (local.get $until)))
        (global.set $sum (i64.add (global.get $sum) (i64.extend_i32_u (global.get $i))))
        (global.set $i (i32.add (global.get $i) (global.get $step)))
        (br $next))))

  (func (export "run") (param $end i32) (result i64)
    (global.set $i (i32.const 0))
    (global.set $sum (i64.const 0))
    (global.set $step (i32.const 1))
    (global.set $scale (f64.const 1))
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (global.get $i) (local.get $end)))
        (if (i32.eqz (i32.rem_u (global.get $i) (i32.const 7)))
          (then (call $change)))
        (if (i32.eqz (i32.and (global.get $i) (i32.const 4095)))
          (then (call $inner)))
        (global.set $sum (i64.add (i64.mul (global.get $sum) (i64.const 31))
          (i64.trunc_f64_u (f64.mul (global.get $scale) (f64.convert_i32_u (global.get $i))))))
        (global.set $i (i32.add (global.get $i) (global.get $step)))
        (br $next)))
    (global.get $sum)))
