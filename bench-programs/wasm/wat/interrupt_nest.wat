;; An endless loop around loops that end and calls, which never comes to its exit
;; endless: yes
(module
  (memory (export "memory") 1)

  (func $sum (param $until i32) (result i32)
    (local $i i32) (local $sum i32)
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $i) (local.get $until)))
        (local.set $sum (i32.add (local.get $sum) (i32.load8_u offset=8 (local.get $i))))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br $next)))
    (local.get $sum))

  (func (export "run") (param $start i32) (result i64)
    (local $i i32)
    (block $never
      (loop $again
        (local.set $i (i32.const 0))
        (block $done
          (loop $next
            (br_if $done (i32.ge_u (local.get $i) (i32.const 1000)))
            (i32.store8 offset=8 (local.get $i) (i32.const 1))
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (br $next)))
        (i32.store (i32.const 0) (i32.add (i32.load (i32.const 0)) (i32.const 1)))
        ;; The sum is always 1000.
        (br_if $never (i32.ne (call $sum (i32.const 1000)) (i32.const 1000)))
        (br $again)))
    (i64.const 0)))
