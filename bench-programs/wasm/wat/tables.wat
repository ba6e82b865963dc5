;; Functions called through a table whose entries change in the loop, and that grows once
;; test: 1200000
;; bench: 39000000
(module
  (type $step (func (param i64) (result i64)))
  (table $steps 4 64 funcref)
  (elem (table $steps) (i32.const 0) func $add $twist $shift $square)
  (elem declare func $add $twist $shift $square)

  (func $add (type $step) (i64.add (local.get 0) (i64.const 12345)))
  (func $twist (type $step) (i64.xor (local.get 0) (i64.rotl (local.get 0) (i64.const 17))))
  (func $shift (type $step) (i64.add (local.get 0) (i64.shr_u (local.get 0) (i64.const 9))))
  (func $square (type $step) (i64.mul (local.get 0) (i64.or (local.get 0) (i64.const 1))))

  (func (export "run") (param $rounds i32) (result i64)
    (local $i i32) (local $size i32) (local $kept funcref) (local $value i64)
    ;; As it is at first, also if this is not the first call.
    (table.set $steps (i32.const 0) (ref.func $add))
    (table.set $steps (i32.const 1) (ref.func $twist))
    (table.set $steps (i32.const 2) (ref.func $shift))
    (table.set $steps (i32.const 3) (ref.func $square))
    (if (i32.eq (table.size $steps) (i32.const 4))
      (then (drop (table.grow $steps (ref.func $add) (i32.const 12)))))
    (table.fill $steps (i32.const 4) (ref.func $twist) (i32.const 12))
    (local.set $value (i64.const 1))
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $i) (local.get $rounds)))
        (local.set $size (table.size $steps))
        (local.set $value (call_indirect $steps (type $step)
          (local.get $value) (i32.rem_u (local.get $i) (local.get $size))))
        (if (i32.eqz (i32.and (local.get $i) (i32.const 63)))
          (then
            ;; Two neighbours change places.
            (local.set $kept (table.get $steps (i32.and (i32.shr_u (local.get $i) (i32.const 6)) (i32.const 7))))
            (table.set $steps (i32.and (i32.shr_u (local.get $i) (i32.const 6)) (i32.const 7))
              (table.get $steps (i32.add (i32.and (i32.shr_u (local.get $i) (i32.const 6)) (i32.const 7)) (i32.const 1))))
            (table.set $steps (i32.add (i32.and (i32.shr_u (local.get $i) (i32.const 6)) (i32.const 7)) (i32.const 1))
              (local.get $kept))))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br $next)))
    (local.get $value)))
