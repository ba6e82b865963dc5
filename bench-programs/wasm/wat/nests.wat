;; Seven loops inside of each other, then many small ones side by side, over one array
;; test: 12
;; bench: 32
(module
  (memory (export "memory") 1)

  ;; Adds to the word that a place stands for.
  (func $add (param $place i32) (param $value i32)
    (local $at i32)
    (local.set $at (i32.shl (i32.and (local.get $place) (i32.const 1023)) (i32.const 2)))
    (i32.store (local.get $at) (i32.add (i32.load (local.get $at)) (local.get $value))))

  (func $deep (param $n i32)
    (local $a i32) (local $b i32) (local $c i32) (local $d i32) (local $e i32) (local $f i32) (local $g i32)
    (block $a_end (loop $a_next
      (br_if $a_end (i32.ge_s (local.get $a) (local.get $n)))
      (local.set $b (i32.const 0))
      (block $b_end (loop $b_next
        (br_if $b_end (i32.gt_s (local.get $b) (local.get $a)))
        (local.set $c (local.get $b))
        (block $c_end (loop $c_next
          (br_if $c_end (i32.ge_s (local.get $c) (local.get $n)))
          (local.set $d (i32.const 0))
          (block $d_end (loop $d_next
            (br_if $d_end (i32.ge_s (local.get $d) (i32.const 3)))
            (local.set $e (local.get $n))
            (block $e_end (loop $e_next
              (br_if $e_end (i32.le_s (local.get $e) (local.get $c)))
              (local.set $f (i32.const 1))
              (block $f_end (loop $f_next
                (br_if $f_end (i32.gt_s (local.get $f) (i32.const 8)))
                (local.set $g (i32.const 0))
                (block $g_end (loop $g_next
                  (br_if $g_end (i32.ge_s (local.get $g) (local.get $d)))
                  (i32.store (i32.shl (i32.and (i32.add (i32.mul (local.get $a) (local.get $f))
                        (i32.add (local.get $b) (local.get $e))) (i32.const 1023)) (i32.const 2))
                    (i32.add (i32.mul (local.get $c) (i32.const 3)) (local.get $g)))
                  (local.set $g (i32.add (local.get $g) (i32.const 1)))
                  (br $g_next)))
                (call $add (i32.add (local.get $f) (local.get $c)) (local.get $e))
                (local.set $f (i32.mul (local.get $f) (i32.const 2)))
                (br $f_next)))
              (local.set $e (i32.sub (local.get $e) (i32.const 1)))
              (br $e_next)))
            (local.set $d (i32.add (local.get $d) (i32.const 1)))
            (br $d_next)))
          (local.set $c (i32.add (local.get $c) (i32.const 2)))
          (br $c_next)))
        (local.set $b (i32.add (local.get $b) (i32.const 1)))
        (br $b_next)))
      (local.set $a (i32.add (local.get $a) (i32.const 1)))
      (br $a_next))))

  (func $wide (result i64)
    (local $i i32) (local $sum i64)
    (block $end (loop $next
      (br_if $end (i32.ge_u (local.get $i) (i32.const 4096)))
      (local.set $sum (i64.add (local.get $sum) (i64.load32_u (local.get $i))))
      (local.set $i (i32.add (local.get $i) (i32.const 4)))
      (br $next)))
    (block $end (loop $next
      (br_if $end (i32.eqz (local.get $i)))
      (local.set $i (i32.sub (local.get $i) (i32.const 8)))
      (i64.store (local.get $i) (i64.add (i64.load (local.get $i)) (i64.const 1)))
      (br $next)))
    (loop $next
      (i32.store8 (local.get $i) (local.get $i))
      (br_if $next (i32.lt_s (local.tee $i (i32.add (local.get $i) (i32.const 16))) (i32.const 4096))))
    (local.set $i (i32.const 0))
    (block $end (loop $next
      (br_if $end (i32.ge_u (local.get $i) (i32.const 4096)))
      (local.set $sum (i64.add (i64.mul (local.get $sum) (i64.const 31)) (i64.load16_u (local.get $i))))
      (local.set $i (i32.add (local.get $i) (i32.const 2)))
      (br $next)))
    (local.get $sum))

  (func (export "run") (param $n i32) (result i64)
    (local $round i32) (local $sum i64)
    (memory.fill (i32.const 0) (i32.const 0) (i32.const 4096))
    (block $end (loop $next
      (br_if $end (i32.ge_s (local.get $round) (i32.const 20)))
      (call $deep (local.get $n))
      (local.set $sum (i64.xor (i64.mul (local.get $sum) (i64.const 7)) (call $wide)))
      (local.set $round (i32.add (local.get $round) (i32.const 1)))
      (br $next)))
    (local.get $sum)))
