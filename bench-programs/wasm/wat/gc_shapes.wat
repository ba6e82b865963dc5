;; Structs of several types in one array: told apart by tests and casts in a loop, some replaced in every round
;; test: 760
;; bench: 25000
;; features: gc
(module
  (type $shape (sub (struct (field $size i32))))
  (type $square (sub final $shape (struct (field $size i32))))
  (type $box (sub $shape (struct (field $size i32) (field $height (mut i32)))))
  (type $prism (sub final $box (struct (field $size i32) (field $height (mut i32)) (field $corners i32))))
  (type $shapes (array (mut (ref null $shape))))

  (func $make (param $number i32) (result (ref null $shape))
    (local $kind i32)
    (local.set $kind (i32.rem_u (local.get $number) (i32.const 4)))
    (if (i32.eqz (local.get $kind))
      (then (return (struct.new $square (local.get $number)))))
    (if (i32.eq (local.get $kind) (i32.const 1))
      (then (return (struct.new $box (local.get $number) (i32.const 3)))))
    (if (i32.eq (local.get $kind) (i32.const 2))
      (then (return (struct.new $prism (local.get $number) (i32.const 5) (i32.const 6)))))
    (ref.null $shape))

  ;; A square weighs its size, a box size times height, a prism also its corners, and nothing weighs 1.
  (func $weight (param $shape (ref null $shape)) (result i32)
    (local $box (ref $box))
    (if (ref.is_null (local.get $shape))
      (then (return (i32.const 1))))
    (block $is_box (result (ref $box))
      (drop (br_on_cast $is_box (ref null $shape) (ref $box) (local.get $shape)))
      (return (struct.get $square $size (ref.cast (ref $square) (local.get $shape)))))
    (local.set $box)
    ;; A box that was looked at is one higher the next time, up to a limit.
    (struct.set $box $height (local.get $box)
      (i32.and (i32.const 1023) (i32.add (struct.get $box $height (local.get $box)) (i32.const 1))))
    (i32.add
      (i32.mul (struct.get $box $size (local.get $box)) (struct.get $box $height (local.get $box)))
      (if (result i32) (ref.test (ref $prism) (local.get $box))
        (then (struct.get $prism $corners (ref.cast (ref $prism) (local.get $box))))
        (else (i32.const 0)))))

  (func (export "run") (param $rounds i32) (result i64)
    (local $shapes (ref $shapes)) (local $round i32) (local $i i32) (local $sum i64)
    (local.set $shapes (array.new_default $shapes (i32.const 500)))
    (loop $fill
      (array.set $shapes (local.get $shapes) (local.get $i) (call $make (local.get $i)))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $fill (i32.lt_u (local.get $i) (i32.const 500))))
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $round) (local.get $rounds)))
        (local.set $i (i32.const 0))
        (block $weighed
          (loop $weigh
            (br_if $weighed (i32.ge_u (local.get $i) (array.len (local.get $shapes))))
            (local.set $sum (i64.add (local.get $sum)
              (i64.extend_i32_u (call $weight (array.get $shapes (local.get $shapes) (local.get $i))))))
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (br $weigh)))
        (array.set $shapes (local.get $shapes) (i32.rem_u (i32.mul (local.get $round) (i32.const 7)) (i32.const 500))
          (call $make (local.get $round)))
        (local.set $round (i32.add (local.get $round) (i32.const 1)))
        (br $next)))
    (local.get $sum)))
