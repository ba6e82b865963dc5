;; Product of matrices that are arrays of arrays of doubles
;; test: 3
;; bench: 100
;; features: gc
(module
  (type $row (array (mut f64)))
  (type $matrix (array (mut (ref null $row))))

  ;; The cell (i, j) is (i * a + j * b) % 13 / 8.
  (func $make (param $size i32) (param $a i32) (param $b i32) (result (ref $matrix))
    (local $matrix (ref $matrix)) (local $row (ref $row)) (local $i i32) (local $j i32)
    (local.set $matrix (array.new_default $matrix (local.get $size)))
    (block $done
      (loop $rows
        (br_if $done (i32.ge_u (local.get $i) (local.get $size)))
        (local.set $row (array.new_default $row (local.get $size)))
        (array.set $matrix (local.get $matrix) (local.get $i) (local.get $row))
        (local.set $j (i32.const 0))
        (block $filled
          (loop $cells
            (br_if $filled (i32.ge_u (local.get $j) (local.get $size)))
            (array.set $row (local.get $row) (local.get $j)
              (f64.mul (f64.const 0.125) (f64.convert_i32_u (i32.rem_u
                (i32.add (i32.mul (local.get $i) (local.get $a)) (i32.mul (local.get $j) (local.get $b)))
                (i32.const 13)))))
            (local.set $j (i32.add (local.get $j) (i32.const 1)))
            (br $cells)))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br $rows)))
    (local.get $matrix))

  (func $multiply (param $a (ref $matrix)) (param $b (ref $matrix)) (param $c (ref $matrix))
    (local $i i32) (local $j i32) (local $k i32) (local $size i32) (local $sum f64)
    (local.set $size (array.len (local.get $a)))
    (block $done
      (loop $rows
        (br_if $done (i32.ge_u (local.get $i) (local.get $size)))
        (local.set $j (i32.const 0))
        (block $filled
          (loop $cells
            (br_if $filled (i32.ge_u (local.get $j) (local.get $size)))
            (local.set $sum (f64.const 0))
            (local.set $k (i32.const 0))
            (block $summed
              (loop $terms
                (br_if $summed (i32.ge_u (local.get $k) (local.get $size)))
                (local.set $sum (f64.add (local.get $sum) (f64.mul
                  (array.get $row (array.get $matrix (local.get $a) (local.get $i)) (local.get $k))
                  (array.get $row (array.get $matrix (local.get $b) (local.get $k)) (local.get $j)))))
                (local.set $k (i32.add (local.get $k) (i32.const 1)))
                (br $terms)))
            (array.set $row (array.get $matrix (local.get $c) (local.get $i)) (local.get $j) (local.get $sum))
            (local.set $j (i32.add (local.get $j) (i32.const 1)))
            (br $cells)))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br $rows))))

  (func (export "run") (param $rounds i32) (result i64)
    (local $a (ref $matrix)) (local $b (ref $matrix)) (local $c (ref $matrix)) (local $round i32) (local $sum i64)
    (local $at i32)
    (local.set $a (call $make (i32.const 50) (i32.const 7) (i32.const 3)))
    (local.set $b (call $make (i32.const 50) (i32.const 5) (i32.const 11)))
    (local.set $c (call $make (i32.const 50) (i32.const 0) (i32.const 0)))
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $round) (local.get $rounds)))
        (call $multiply (local.get $a) (local.get $b) (local.get $c))
        (local.set $at (i32.rem_u (local.get $round) (i32.const 50)))
        (local.set $sum (i64.add (i64.mul (local.get $sum) (i64.const 31)) (i64.reinterpret_f64
          (array.get $row (array.get $matrix (local.get $c) (local.get $at)) (local.get $at)))))
        ;; The matrix changes: a cell of the diagonal becomes the number of the round.
        (array.set $row (array.get $matrix (local.get $a) (local.get $at)) (local.get $at)
          (f64.convert_i32_u (local.get $round)))
        (local.set $round (i32.add (local.get $round) (i32.const 1)))
        (br $next)))
    (local.get $sum)))
