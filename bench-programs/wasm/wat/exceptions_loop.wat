;; A parser of numbers that throws at every bad letter; the loop around it catches, counts and goes on
;; test: 60
;; bench: 2500
;; features: exceptions
(module
  (memory (export "memory") 1)
  (tag $bad (param i32 i32))
  (tag $large (param i32))

  ;; The number that begins at a place, and the place behind it. Throws the place and the letter, or the number so far.
  (func $number (param $at i32) (result i32 i32)
    (local $value i32) (local $letter i32)
    (block $end
      (loop $next
        (local.set $letter (i32.load8_u (local.get $at)))
        (br_if $end (i32.eq (local.get $letter) (i32.const 32)))
        (if (i32.gt_u (i32.sub (local.get $letter) (i32.const 48)) (i32.const 9))
          (then (throw $bad (local.get $at) (local.get $letter))))
        (local.set $value (i32.add (i32.mul (local.get $value) (i32.const 10))
          (i32.sub (local.get $letter) (i32.const 48))))
        (if (i32.gt_u (local.get $value) (i32.const 949999))
          (then (throw $large (local.get $value))))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (br $next)))
    (local.get $value) (i32.add (local.get $at) (i32.const 1)))

  ;; Behind the next space.
  (func $skip (param $at i32) (result i32)
    (loop $next
      (local.set $at (i32.add (local.get $at) (i32.const 1)))
      (br_if $next (i32.ne (i32.load8_u (i32.sub (local.get $at) (i32.const 1))) (i32.const 32))))
    (local.get $at))

  ;; 4096 letters: mostly digits, a space in every seventh place, a letter x now and then.
  (func $write
    (local $i i32) (local $letter i32)
    (loop $next
      (local.set $letter (i32.add (i32.const 48) (i32.rem_u (i32.mul (local.get $i) (i32.const 37)) (i32.const 10))))
      (if (i32.eqz (i32.rem_u (local.get $i) (i32.const 61)))
        (then (local.set $letter (i32.const 120))))
      (if (i32.eq (i32.rem_u (local.get $i) (i32.const 7)) (i32.const 6))
        (then (local.set $letter (i32.const 32))))
      (i32.store8 (local.get $i) (local.get $letter))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get $i) (i32.const 4096))))
    (i32.store8 (i32.const 4095) (i32.const 32)))

  (func (export "run") (param $rounds i32) (result i64)
    (local $round i32) (local $at i32) (local $sum i64)
    (call $write)
    (block $done
      (loop $again
        (br_if $done (i32.ge_u (local.get $round) (local.get $rounds)))
        (local.set $at (i32.const 0))
        (block $read
          (loop $next
            (br_if $read (i32.ge_u (local.get $at) (i32.const 4096)))
            (block $bad (result i32 i32)
              (block $large (result i32)
                (try_table (result i32 i32) (catch $bad $bad) (catch $large $large)
                  (call $number (local.get $at)))
                (local.set $at)
                (i64.extend_i32_u)
                (local.set $sum (i64.add (local.get $sum)))
                (br $next))
              ;; Too large: what was read counts for half.
              (i64.shr_u (i64.extend_i32_u) (i64.const 1))
              (local.set $sum (i64.add (local.get $sum)))
              (local.set $at (call $skip (local.get $at)))
              (br $next))
            (i64.extend_i32_u)
            (local.set $sum (i64.add (i64.mul (local.get $sum) (i64.const 3))))
            (local.set $at (call $skip))
            (br $next)))
        (local.set $round (i32.add (local.get $round) (i32.const 1)))
        (br $again)))
    (local.get $sum)))
