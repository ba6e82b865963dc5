;; A search that leaves three loops by an exception; one in between catches all, notes it and throws it again
;; test: 8700
;; bench: 280000
;; features: exceptions
(module
  (memory (export "memory") 1)
  (tag $found (param i32 i32 i32))

  ;; Throws the first i <= j <= k with i * i + j * j == k * k and i + j + k == perimeter.
  (func $search (param $perimeter i32)
    (local $i i32) (local $j i32) (local $k i32)
    (local.set $i (i32.const 1))
    (block $done
      (loop $sides
        (br_if $done (i32.gt_u (i32.mul (local.get $i) (i32.const 3)) (local.get $perimeter)))
        (local.set $j (local.get $i))
        (block $longer
          (loop $others
            (local.set $k (i32.sub (i32.sub (local.get $perimeter) (local.get $i)) (local.get $j)))
            (br_if $longer (i32.lt_s (local.get $k) (local.get $j)))
            ;; How many were tried, in memory: an exception must not lose one.
            (i32.store (i32.const 0) (i32.add (i32.load (i32.const 0)) (i32.const 1)))
            (if (i32.eq
                  (i32.add (i32.mul (local.get $i) (local.get $i)) (i32.mul (local.get $j) (local.get $j)))
                  (i32.mul (local.get $k) (local.get $k)))
              (then (throw $found (local.get $i) (local.get $j) (local.get $k))))
            (local.set $j (i32.add (local.get $j) (i32.const 1)))
            (br $others)))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br $sides))))

  (func $watched (param $perimeter i32)
    (block $any (result exnref)
      (try_table (catch_all_ref $any)
        (call $search (local.get $perimeter)))
      (return))
    (i32.store (i32.const 4) (i32.add (i32.load (i32.const 4)) (i32.const 1)))
    (throw_ref))

  (func (export "run") (param $rounds i32) (result i64)
    (local $round i32) (local $sum i64) (local $product i32)
    (i64.store (i32.const 0) (i64.const 0))
    (block $done
      (loop $again
        (br_if $done (i32.ge_u (local.get $round) (local.get $rounds)))
        (block $next
          (block $found (result i32 i32 i32)
            (try_table (catch $found $found)
              (call $watched (i32.add (i32.const 12) (i32.rem_u (local.get $round) (i32.const 97)))))
            (local.set $sum (i64.add (local.get $sum) (i64.const 1)))
            (br $next))
          (i32.mul)
          (local.set $product (i32.mul))
          (local.set $sum (i64.add (i64.mul (local.get $sum) (i64.const 31)) (i64.extend_i32_u (local.get $product)))))
        (local.set $round (i32.add (local.get $round) (i32.const 1)))
        (br $again)))
    (i64.add (local.get $sum) (i64.load (i32.const 0)))))
