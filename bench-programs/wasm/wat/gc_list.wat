;; Linked lists of structs: built, reversed in place, merged in order, summed
;; test: 250
;; bench: 8100
;; features: gc
(module
  (type $node (struct (field $value (mut i32)) (field $next (mut (ref null $node)))))

  ;; So many nodes with ascending values: start, start + step, ...
  (func $ascending (param $count i32) (param $start i32) (param $step i32) (result (ref null $node))
    (local $list (ref null $node)) (local $i i32)
    (block $done
      (loop $next
        (br_if $done (i32.ge_s (local.get $i) (local.get $count)))
        (local.set $list (struct.new $node
          (i32.add (local.get $start) (i32.mul (local.get $i) (local.get $step))) (local.get $list)))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br $next)))
    (call $reverse (local.get $list)))

  (func $reverse (param $list (ref null $node)) (result (ref null $node))
    (local $done (ref null $node)) (local $next (ref null $node))
    (block $end
      (loop $step
        (br_if $end (ref.is_null (local.get $list)))
        (local.set $next (struct.get $node $next (local.get $list)))
        (struct.set $node $next (local.get $list) (local.get $done))
        (local.set $done (local.get $list))
        (local.set $list (local.get $next))
        (br $step)))
    (local.get $done))

  (func $merge (param $a (ref null $node)) (param $b (ref null $node)) (result (ref null $node))
    (local $head (ref $node)) (local $last (ref $node)) (local $taken (ref $node))
    (local.set $head (struct.new_default $node))
    (local.set $last (local.get $head))
    (block $end
      (loop $step
        (br_if $end (ref.is_null (local.get $a)))
        (br_if $end (ref.is_null (local.get $b)))
        (local.set $taken (if (result (ref $node))
            (i32.le_s (struct.get $node $value (local.get $a)) (struct.get $node $value (local.get $b)))
          (then
            (ref.as_non_null (local.get $a))
            (local.set $a (struct.get $node $next (local.get $a))))
          (else
            (ref.as_non_null (local.get $b))
            (local.set $b (struct.get $node $next (local.get $b))))))
        (struct.set $node $next (local.get $last) (local.get $taken))
        (local.set $last (local.get $taken))
        (br $step)))
    (struct.set $node $next (local.get $last)
      (select (result (ref null $node)) (local.get $b) (local.get $a) (ref.is_null (local.get $a))))
    (struct.get $node $next (local.get $head)))

  (func $sum (param $list (ref null $node)) (param $sum i64) (result i64)
    (block $end
      (loop $step
        (br_if $end (ref.is_null (local.get $list)))
        (local.set $sum (i64.add (i64.mul (local.get $sum) (i64.const 31))
          (i64.extend_i32_s (struct.get $node $value (local.get $list)))))
        (struct.set $node $value (local.get $list)
          (i32.add (struct.get $node $value (local.get $list)) (i32.const 1)))
        (local.set $list (struct.get $node $next (local.get $list)))
        (br $step)))
    (local.get $sum))

  (func (export "run") (param $rounds i32) (result i64)
    (local $round i32) (local $sum i64) (local $list (ref null $node))
    (block $done
      (loop $next
        (br_if $done (i32.ge_s (local.get $round) (local.get $rounds)))
        (local.set $list (call $merge
          (call $ascending (i32.const 40) (local.get $round) (i32.const 3))
          (call $ascending (i32.const 30) (i32.const 5) (i32.const 4))))
        (local.set $sum (call $sum (local.get $list) (local.get $sum)))
        (local.set $sum (call $sum (call $reverse (local.get $list)) (local.get $sum)))
        (local.set $round (i32.add (local.get $round) (i32.const 1)))
        (br $next)))
    (local.get $sum)))
