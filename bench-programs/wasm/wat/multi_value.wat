;; Blocks and loops with several parameters and results: greatest common divisors, Fibonacci pairs, powers
;; test: 23000
;; bench: 740000
(module
  ;; Quotient and remainder.
  (func $divide (param $a i64) (param $b i64) (result i64 i64)
    (i64.div_u (local.get $a) (local.get $b))
    (i64.rem_u (local.get $a) (local.get $b)))

  (func $gcd (param $a i64) (param $b i64) (result i64)
    (local.get $a) (local.get $b)
    (loop $step (param i64 i64) (result i64)
      (local.set $b)
      (local.set $a)
      (if (param) (result i64) (i64.eqz (local.get $b))
        (then (local.get $a))
        (else
          (local.get $b)
          (call $divide (local.get $a) (local.get $b))
          (local.set $a)
          (drop)
          (local.get $a)
          (br $step)))))

  ;; The Fibonacci numbers F(n) and F(n + 1), modulo 2^64.
  (func $fibonacci (param $n i32) (result i64 i64)
    (local $a i64) (local $b i64)
    (i64.const 0) (i64.const 1)
    (block $done (param i64 i64) (result i64 i64)
      (loop $step (param i64 i64) (result i64 i64)
        (br_if $done (i32.eqz (local.get $n)))
        (local.set $n (i32.sub (local.get $n) (i32.const 1)))
        (local.set $b)
        (local.set $a)
        (local.get $b)
        (i64.add (local.get $a) (local.get $b))
        (br $step))))

  ;; base^exponent modulo the modulus, which is below 2^32: result, and how many steps it took.
  (func $power (param $base i64) (param $exponent i64) (param $modulus i64) (result i64 i32)
    (local $result i64) (local $steps i32)
    (i64.const 1) (i32.const 0)
    (loop $step (param i64 i32) (result i64 i32)
      (local.set $steps)
      (local.set $result)
      (if (result i64 i32) (i64.eqz (local.get $exponent))
        (then (local.get $result) (local.get $steps))
        (else
          (if (i32.wrap_i64 (i64.and (local.get $exponent) (i64.const 1)))
            (then (local.set $result (i64.rem_u (i64.mul (local.get $result) (local.get $base)) (local.get $modulus)))))
          (local.set $base (i64.rem_u (i64.mul (local.get $base) (local.get $base)) (local.get $modulus)))
          (local.set $exponent (i64.shr_u (local.get $exponent) (i64.const 1)))
          (local.get $result)
          (i32.add (local.get $steps) (i32.const 1))
          (br $step)))))

  (func (export "run") (param $rounds i32) (result i64)
    (local $i i32) (local $sum i64)
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $i) (local.get $rounds)))
        (local.set $sum (i64.add (i64.mul (local.get $sum) (i64.const 31))
          (call $gcd (i64.mul (i64.extend_i32_u (local.get $i)) (i64.const 360360)) (i64.const 720720000))))
        (call $fibonacci (i32.rem_u (local.get $i) (i32.const 100)))
        (i64.xor)
        (local.set $sum (i64.add (local.get $sum)))
        (call $power (i64.extend_i32_u (local.get $i)) (i64.const 65537) (i64.const 999983))
        (i64.extend_i32_u)
        (i64.add)
        (local.set $sum (i64.add (local.get $sum)))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br $next)))
    (local.get $sum)))
