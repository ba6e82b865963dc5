;; Arrays of the garbage collector: a sieve in packed bytes, gaps counted, the list of primes doubled when full
;; test: 400000
;; bench: 13000000
;; features: gc
(module
  (type $bytes (array (mut i8)))
  (type $numbers (array (mut i32)))

  (func $sieve (param $limit i32) (result (ref $bytes))
    (local $composite (ref $bytes)) (local $i i32) (local $j i32)
    (local.set $composite (array.new_default $bytes (local.get $limit)))
    (local.set $i (i32.const 2))
    (block $done
      (loop $next
        (br_if $done (i32.gt_u (i32.mul (local.get $i) (local.get $i)) (local.get $limit)))
        (if (i32.eqz (array.get_u $bytes (local.get $composite) (local.get $i)))
          (then
            (local.set $j (i32.mul (local.get $i) (local.get $i)))
            (block $marked
              (loop $mark
                (br_if $marked (i32.ge_u (local.get $j) (array.len (local.get $composite))))
                (array.set $bytes (local.get $composite) (local.get $j) (i32.const 1))
                (local.set $j (i32.add (local.get $j) (local.get $i)))
                (br $mark)))))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br $next)))
    (local.get $composite))

  ;; All primes, in an array that grows.
  (func $collect (param $composite (ref $bytes)) (result (ref $numbers) i32)
    (local $primes (ref $numbers)) (local $larger (ref $numbers)) (local $count i32) (local $i i32)
    (local.set $primes (array.new_default $numbers (i32.const 16)))
    (local.set $i (i32.const 2))
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $i) (array.len (local.get $composite))))
        (if (i32.eqz (array.get_u $bytes (local.get $composite) (local.get $i)))
          (then
            (if (i32.eq (local.get $count) (array.len (local.get $primes)))
              (then
                (local.set $larger (array.new_default $numbers (i32.mul (local.get $count) (i32.const 2))))
                (array.copy $numbers $numbers (local.get $larger) (i32.const 0)
                  (local.get $primes) (i32.const 0) (local.get $count))
                (local.set $primes (local.get $larger))))
            (array.set $numbers (local.get $primes) (local.get $count) (local.get $i))
            (local.set $count (i32.add (local.get $count) (i32.const 1)))))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br $next)))
    (local.get $primes) (local.get $count))

  (func (export "run") (param $limit i32) (result i64)
    (local $primes (ref null $numbers)) (local $gaps (ref $numbers)) (local $count i32) (local $i i32) (local $gap i32)
    (local $sum i64)
    (call $collect (call $sieve (local.get $limit)))
    (local.set $count)
    (local.set $primes)
    (local.set $gaps (array.new $numbers (i32.const 7) (i32.const 256)))
    (local.set $i (i32.const 1))
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $i) (local.get $count)))
        (local.set $gap (i32.sub
          (array.get $numbers (local.get $primes) (local.get $i))
          (array.get $numbers (local.get $primes) (i32.sub (local.get $i) (i32.const 1)))))
        (array.set $numbers (local.get $gaps) (local.get $gap)
          (i32.add (array.get $numbers (local.get $gaps) (local.get $gap)) (i32.const 1)))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br $next)))
    (local.set $sum (i64.extend_i32_u (local.get $count)))
    (local.set $i (i32.const 0))
    (loop $add
      (local.set $sum (i64.add (i64.mul (local.get $sum) (i64.const 31))
        (i64.extend_i32_u (array.get $numbers (local.get $gaps) (local.get $i)))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $add (i32.lt_u (local.get $i) (array.len (local.get $gaps)))))
    (local.get $sum)))
